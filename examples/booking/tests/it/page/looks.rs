//! Whether a page can be read and used: by eyes, by thumbs, and by a screen reader.

use serde_json::{Value, json};

use super::browser::Browser;

/// Texts with less contrast than WCAG's AA asks for, things to press that are lower than 44 px, and
/// what is wider than the window.
const CHECK: &str = r#"
const faults = [];
const name = (e) => `${e.tagName}#${e.id}.${e.className} "${e.textContent.trim().slice(0, 40)}"`;
const rgb = (text) => {
  const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
  return { rgb: [r, g, b], a };
};
const luminance = (c) => {
  const [r, g, b] = c.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const back = rgb(getComputedStyle(e).backgroundColor);
    if (back.a === 1) return back.rgb;
  }
  return [255, 255, 255];
};
const shown = (e) => e.checkVisibility() && !e.closest(".unseen");
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let texts = 0;
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !shown(e)) continue;
  texts += 1;
  const [a, b] = [luminance(rgb(getComputedStyle(e).color).rgb), luminance(behind(e))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(2)}: ${name(e)}`);
}
if (texts < 5) faults.push(`only ${texts} texts`);
for (const e of document.querySelectorAll("button, input:not([type=hidden]), nav a, .brand")) {
  const { width, height } = e.getBoundingClientRect();
  if (shown(e) && (height < 44 || width < 40)) faults.push(`${width}x${height}: ${name(e)}`);
}
const { scrollWidth, clientWidth } = document.documentElement;
if (scrollWidth > clientWidth) faults.push(`wider than the window: ${scrollWidth} > ${clientWidth}`);
for (const e of document.querySelectorAll("main *")) {
  if (shown(e) && e.getBoundingClientRect().right > clientWidth + 1) faults.push(`cut off: ${name(e)}`);
}
for (const e of document.querySelectorAll("input:not([type=hidden])")) {
  if (e.labels.length !== 1) faults.push(`no label: ${name(e)}`);
  if (!e.autocomplete) faults.push(`no autocomplete: ${name(e)}`);
}
for (const e of document.querySelectorAll("[aria-describedby], [aria-labelledby], [for], [form]")) {
  for (const attribute of ["aria-describedby", "aria-labelledby", "for", "form"]) {
    for (const id of (e.getAttribute(attribute) ?? "").split(" ").filter(Boolean)) {
      if (!document.getElementById(id)) faults.push(`${attribute} leads nowhere: ${name(e)}`);
    }
  }
}
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`twice: #${id}`);
for (const e of document.querySelectorAll("a[href^='#']")) {
  if (!document.getElementById(e.getAttribute("href").slice(1))) faults.push(`leads nowhere: ${name(e)}`);
}
if (!document.documentElement.lang || !document.title) faults.push("no language, or no title");
return faults;
"#;

/// A node of the accessibility tree.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) role: String,
    pub(super) name: String,
    /// Of a heading.
    level: Option<u64>,
}

/// What a screen reader is told.
pub(super) async fn tree(browser: &Browser) -> Vec<Node> {
    let tree = browser.devtools("Accessibility.getFullAXTree", json!({})).await;
    let nodes = tree["nodes"].as_array().expect("it is a tree");
    let seen = nodes.iter().filter(|node| node["ignored"] != true);
    let node = |node: &Value| {
        let text = |what: &str| node[what]["value"].as_str().unwrap_or_default().to_owned();
        let properties = node["properties"].as_array();
        let level = properties.and_then(|all| all.iter().find(|one| one["name"] == "level"));
        let level = level.and_then(|level| level["value"]["value"].as_u64());
        Node { role: text("role"), name: text("name"), level }
    };
    seen.map(node).collect()
}

/// Checks the page that is open, on a screen and on small phones, light and dark.
pub(super) async fn check(browser: &Browser, name: &str) {
    for (width, height) in [(1000, 800), (360, 740), (320, 568)] {
        browser.resize(width, height).await;
        for scheme in ["light", "dark"] {
            browser.prefer("prefers-color-scheme", scheme).await;
            let faults = browser.run(CHECK).await;
            assert_eq!(faults, json!([]), "{name}, {width} px, {scheme}");
            browser.screenshot(&format!("{name}-{width}-{scheme}")).await;
        }
    }
    browser.prefer("prefers-color-scheme", "light").await;
    browser.resize(1000, 800).await;

    let tree = tree(browser).await;
    let count = |role: &str| tree.iter().filter(|node| node.role == role).count();
    for landmark in ["main", "banner"] {
        assert_eq!(count(landmark), 1, "{name}: {landmark} in {tree:#?}");
    }
    assert!(count("navigation") >= 1, "{name}: {tree:#?}");
    let headings: Vec<_> = tree.iter().filter(|node| node.role == "heading").collect();
    let first = headings.iter().filter(|node| node.level == Some(1)).count();
    assert_eq!(first, 1, "{name}: one heading says what the page is: {headings:?}");
    let mut buttons = Vec::new();
    for node in &tree {
        if ["button", "link", "textbox", "navigation", "heading"].contains(&node.role.as_str()) {
            assert!(!node.name.trim().is_empty(), "{name}: {node:?} has no name");
        }
        if node.role == "button" {
            assert!(!buttons.contains(&&node.name), "{name}: two are called {:?}", node.name);
            buttons.push(&node.name);
        }
    }
}
