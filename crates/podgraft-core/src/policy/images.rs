//! Replaces image names in what policies inject. The fields are those of kustomize's `images`.

use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

use super::functions::{split_digest, split_tag};
use super::{Injection, PolicyValue};

// The fields are those of <https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/images/>.
/// An entry of kustomize's `images`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Image"))]
#[serde(rename_all = "camelCase")]
pub struct ImageMirror {
    /// The image without tag and digest, as the policy writes it.
    pub name: String,
    /// The new name.
    pub new_name: Option<String>,
    /// The new tag, which replaces the tag and the digest.
    pub new_tag: Option<String>,
    // The digest is removed, because it would be that of another image.
    /// A suffix for the tag.
    pub tag_suffix: Option<String>,
    // With `new_tag`, both are written.
    /// The new digest, such as `sha256:...`, which replaces the tag and the digest.
    pub digest: Option<String>,
}

impl ImageMirror {
    /// What is wrong with the entry, as the field and a message. The messages are for users.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let names = [
            ("name", Some(self.name.as_str())),
            ("newName", self.new_name.as_deref()),
        ];
        for (field, name) in names {
            let Some(name) = name else { continue };
            let plain = split_tag(split_digest(name).0).0;
            if plain.is_empty() {
                problems.push((field, format!("`{field}` must not be empty")));
            } else if plain != name {
                let message = format!("`{field}` must have no tag and no digest: write `{plain}`");
                problems.push((field, message));
            }
        }
        problems
    }

    /// The replaced image; `None` if the name does not match.
    pub fn rewrite(&self, image: &str) -> Option<String> {
        let (named, digest) = split_digest(image);
        let (name, tag) = split_tag(named);
        if name != self.name {
            return None;
        }
        let (tag, digest) = match (&self.new_tag, &self.digest, &self.tag_suffix) {
            (Some(tag), new, _) => (Some(tag.clone()), new.as_deref()),
            (None, Some(new), _) => (None, Some(new.as_str())),
            (None, None, Some(suffix)) => {
                (Some(format!("{}{suffix}", tag.unwrap_or_default())), None)
            }
            (None, None, None) => (tag.map(str::to_owned), digest),
        };
        let mut image = self.new_name.clone().unwrap_or_else(|| name.to_owned());
        for (mark, part) in [(':', tag.as_deref()), ('@', digest)] {
            if let Some(part) = part {
                image.push(mark);
                image.push_str(part);
            }
        }
        Some(image)
    }
}

/// Replaces the images of injected containers and image volumes.
pub(crate) fn mirror_images(inject: &mut Injection, mirrors: &[ImageMirror]) {
    if mirrors.is_empty() {
        return;
    }
    let init = inject.init_containers.iter_mut().map(|(item, _)| item);
    let sidecars = inject.sidecars.iter_mut().map(|(item, ..)| item);
    for item in init.chain(sidecars).chain(&mut inject.ephemeral_containers) {
        rewrite_at(item, "/image", mirrors);
    }
    for (item, _) in &mut inject.volumes {
        rewrite_at(item, "/image/reference", mirrors);
    }
}

/// Replaces the image at a JSON pointer. The first mirror that matches wins.
fn rewrite_at(item: &mut PolicyValue, pointer: &str, mirrors: &[ImageMirror]) {
    let image = item.value.pointer(pointer).and_then(Value::as_str);
    let Some(image) =
        image.and_then(|image| mirrors.iter().find_map(|mirror| mirror.rewrite(image)))
    else {
        return;
    };
    if let Some(place) = Arc::make_mut(&mut item.value).pointer_mut(pointer) {
        *place = Value::String(image);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(image: &str, mirror: [Option<&str>; 4]) -> Option<String> {
        let [new_name, new_tag, tag_suffix, digest] = mirror.map(|word| word.map(str::to_owned));
        ImageMirror {
            name: "docker.io/curl".into(),
            new_name,
            new_tag,
            tag_suffix,
            digest,
        }
        .rewrite(image)
    }

    #[test]
    fn the_words_mean_what_they_mean_in_kustomize() {
        let to = |mirror| rewritten("docker.io/curl:8@sha256:ab", mirror);
        assert_eq!(
            to([Some("m:5000/curl"), None, None, None]).as_deref(),
            Some("m:5000/curl:8@sha256:ab")
        );
        assert_eq!(
            to([None, Some("9"), None, None]).as_deref(),
            Some("docker.io/curl:9")
        );
        assert_eq!(
            to([None, None, None, Some("sha256:cd")]).as_deref(),
            Some("docker.io/curl@sha256:cd")
        );
        assert_eq!(
            to([None, Some("9"), None, Some("sha256:cd")]).as_deref(),
            Some("docker.io/curl:9@sha256:cd")
        );
        assert_eq!(
            to([None, None, Some("-fips"), None]).as_deref(),
            Some("docker.io/curl:8-fips")
        );
    }

    #[test]
    fn only_the_whole_name_fits_and_a_port_is_no_tag() {
        let mirror = [Some("m/curl"), None, None, None];
        for other in [
            "curl:8",
            "docker.io/curlimages/curl:8",
            "docker.io/curl-base",
            "docker.io:5000/curl",
        ] {
            assert_eq!(rewritten(other, mirror), None, "{other}");
        }
        assert_eq!(
            rewritten("docker.io/curl", mirror).as_deref(),
            Some("m/curl")
        );
    }
}
