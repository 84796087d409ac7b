// A picture of the page of `podgraft diff -o html`: node tools/page_picture.mjs PAGE PICTURE
// Needs playwright-core from npm (found through NODE_PATH) and Chromium.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [file, picture] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
const page = await browser.newPage({ viewport: { width: 1180, height: 820 }, colorScheme: "light" });
await page.goto(pathToFileURL(file).href);
if (await page.locator("details[open]").count() === 0) await page.locator("details.workload summary").first().click();
await page.locator("details[open] .hunk tr.plus").first().waitFor();
await page.screenshot({ path: picture });
await browser.close();
