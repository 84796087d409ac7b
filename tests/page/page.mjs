// The page of `podgraft diff -o html` in a real browser: node tests/page/page.mjs PAGE MANY SHOTS
// PAGE: a page of a few workloads and two policies; MANY: one of 2,000; SHOTS: a folder for pictures, or nothing.
// Needs playwright-core from npm (found through NODE_PATH) and Chromium.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [page_file, many_file, shots] = process.argv.slice(2);
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", headless: true, args });
const complaints = [];
const open = async (file, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith("file:")) complaints.push(`asks for ${request.url()}`); });
  await page.goto(pathToFileURL(file).href);
  return page;
};
const shoot = async (page, name) => { if (shots) await page.screenshot({ path: `${shots}/${name}.png` }); };
// The page's own policy forbids `eval`, which waitForFunction needs.
const until = async (page, test, argument) => {
  for (const end = Date.now() + 20_000; Date.now() < end; await page.waitForTimeout(50)) {
    if (await page.evaluate(test, argument)) return;
  }
  assert.fail(`never: ${test}`);
};
const shown = (page) => page.locator("details.workload:not([hidden])").count();

// It renders, filters, searches and draws.
let page = await open(page_file);
const all = await shown(page);
assert.ok(all >= 2, "the page shows several workloads");
await page.locator("details.workload summary").first().click();
await page.locator("details[open] .hunk tr.plus").first().waitFor();
assert.equal(await page.locator("details[open] .pod").count(), 2);
assert.ok(await page.locator("details[open] .pod .box.new").count() > 0, "what is new is marked");
await shoot(page, "light");
await page.locator("#view").click();
await page.locator("details[open] .hunk.split").first().waitFor();
await shoot(page, "split");
await page.keyboard.press("t");
assert.ok(["dark", "light"].includes(await page.evaluate(() => document.documentElement.dataset.theme)));
await shoot(page, "dark");
const policy = page.locator("button.policy").first();
const number = Number(await policy.locator("small").textContent());
await policy.click();
assert.equal(await shown(page), number);
await policy.click();
await page.keyboard.press("/");
await page.keyboard.type("no-such-workload");
await until(page, () => !document.querySelector("details.workload:not([hidden])"));
await page.keyboard.press("Escape");
await until(page, (all) => document.querySelectorAll("details.workload:not([hidden])").length === all, all);
await page.locator("h1").click();
await page.keyboard.press("j");
await page.keyboard.press("j");
assert.equal(await page.evaluate(() => [...document.querySelectorAll("details.workload")].indexOf(document.activeElement.closest("details"))), 1);
await page.keyboard.press("c");
await until(page, () => !document.querySelector("details.workload[open]"));
await page.keyboard.press("e");
await until(page, () => !document.querySelector("details.workload:not([open])"));
await page.keyboard.press("?");
assert.ok(await page.locator("dialog").isVisible());
await page.keyboard.press("Escape");

// On paper all that is shown is there.
const paper = await open(page_file);
const pdf = await paper.pdf();
assert.ok(pdf.length > 20_000, "the print holds the diffs");
assert.equal(await paper.locator("details.workload[open]").count(), all);

// On a phone nothing is wider than the screen.
page = await open(page_file, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
await page.locator("details.workload summary").first().click();
await page.locator("details[open] .hunk").first().waitFor();
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page fits a phone");
await shoot(page, "phone");

// 2,000 workloads stay usable.
const timed = async (what, most, run) => {
  const start = Date.now();
  await run();
  const took = Date.now() - start;
  console.log(`${what}: ${took} ms`);
  assert.ok(took < most, `${what} took ${took} ms`);
};
await timed("2,000 workloads loaded", 60_000, async () => { page = await open(many_file); });
assert.equal(await shown(page), 2000);
await timed("searched", 30_000, async () => {
  await page.locator("#search").fill("app-1999");
  await until(page, () => document.querySelectorAll("details.workload:not([hidden])").length === 1);
});
await timed("opened", 30_000, async () => {
  await page.locator("details.workload:not([hidden]) summary").click();
  await page.locator("details[open] .hunk").first().waitFor();
});
await timed("filtered", 30_000, async () => {
  await page.locator("#search").fill("");
  await page.locator("button.policy").first().click();
  await until(page, () => document.querySelectorAll("details.workload:not([hidden])").length > 1);
});
await shoot(page, "many");

assert.deepEqual(complaints, []);
await browser.close();
console.log("the page is as it should be");
