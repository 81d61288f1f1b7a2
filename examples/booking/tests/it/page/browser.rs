//! A headless Chromium, driven over WebDriver.

use std::env;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use thirtyfour::common::log::LoggingPrefsLogLevel;
use thirtyfour::{By, ChromiumLikeCapabilities, DesiredCapabilities, Key, WebDriver};
use tokio::sync::Mutex;

/// A directory for screenshots; without it they go to one that the test removes.
const SCREENSHOTS: &str = "BOOKING_SCREENSHOTS";

/// One at a time: each is several processes.
static ONE: Mutex<()> = Mutex::const_new(());

/// A browser with one page.
pub(super) struct Browser {
    pub(super) driver: WebDriver,
    screenshots: PathBuf,
}

/// The driver's process, and with it the browser's: they are one group, which ends with this value,
/// or with the test's process if that is killed.
struct Group {
    watcher: Child,
    driver: Child,
    dir: PathBuf,
}

const WATCH: &str =
    r#"trap '' INT TERM HUP; read -r _; kill -s KILL -- "-$1"; sleep 0.2; rm -rf "$2""#;

impl Group {
    /// Starts `chromedriver`, and returns its URL.
    fn start() -> (Self, String) {
        let dir = env::temp_dir().join(format!("booking-browser-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&dir).expect("the directory can be made");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", &dir)
            .env("HOME", &dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it was found before");
        let output = driver.stdout.take().expect("it is piped");
        let watcher = Command::new("sh")
            .args(["-c", WATCH, "watcher"])
            .arg(driver.id().to_string())
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let group = Self { watcher, driver, dir };
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            Some(
                line.split_once("started successfully on port ")?
                    .1
                    .trim_end_matches('.')
                    .to_owned(),
            )
        });
        let port = port.expect("chromedriver says where it listens");
        // Whatever else it says is not to fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        (group, format!("http://127.0.0.1:{port}"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Whether the test can be run. Where everything was set up for it, it must be.
fn is_installed() -> bool {
    let is_there = |name: &str| {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|dir| dir.join(name).is_file())
    };
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    is_there("chromedriver") && browsers.into_iter().any(is_there)
}

/// Runs a test with a browser, if there is one.
pub(super) async fn with_browser<F: Future<Output = Browser>>(test: impl FnOnce(Browser) -> F) {
    if !is_installed() {
        assert!(env::var_os("CI").is_none(), "chromium and chromedriver are missing");
        eprintln!(
            "left out, for want of chromium and chromedriver; scripts/set-up.sh installs them"
        );
        return;
    }
    let _one = ONE.lock().await;
    let (group, url) = Group::start();
    let screenshots = env::var_os(SCREENSHOTS).map_or_else(|| group.dir.clone(), PathBuf::from);
    let driver = WebDriver::new(&url, capabilities(&group.dir)).await.expect("a browser starts");
    // A handle that is left over would try to end the session when the driver has gone.
    let session = driver.clone();
    let browser = Browser { driver, screenshots };
    let outcome = AssertUnwindSafe(test(browser)).catch_unwind().await;
    let _ = session.quit().await;
    drop(group);
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn capabilities(dir: &Path) -> thirtyfour::ChromeCapabilities {
    let mut wanted = DesiredCapabilities::chrome();
    let profile = format!("--user-data-dir={}", dir.join("profile").display());
    let mut arguments = vec![
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--force-color-profile=srgb",
        "--lang=en",
        "--window-size=1000,800",
        // It has no business elsewhere.
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        &profile,
    ];
    if rustix::process::geteuid().is_root() {
        // Chromium's sandbox refuses to be root's.
        arguments.push("--no-sandbox");
    }
    for argument in arguments {
        wanted.add_arg(argument).expect("it is an argument");
    }
    wanted.set_logging_prefs("browser", LoggingPrefsLogLevel::All).expect("it is a level");
    wanted
}

impl Browser {
    pub(super) async fn open(&self, url: &str) {
        self.driver.goto(url).await.expect("the page loads");
    }

    /// What a script returns.
    pub(super) async fn run(&self, script: &str) -> Value {
        let result = self.driver.execute(script, vec![]).await.expect("the script runs");
        result.json().clone()
    }

    /// A command of the DevTools protocol.
    pub(super) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.driver
            .cdp()
            .send_raw(command, parameters)
            .await
            .expect("the browser knows the command")
    }

    /// The text of the first element; none if there is no such element.
    pub(super) async fn text(&self, css: &str) -> Option<String> {
        let script = format!("return document.querySelector({})?.textContent", json!(css));
        self.run(&script).await.as_str().map(str::to_owned)
    }

    /// Waits until a script returns true.
    pub(super) async fn wait_for(&self, script: &str) {
        for _ in 0..600 {
            // While a page is being left, there is nowhere to run it.
            let result = self.driver.execute(format!("return {script}"), vec![]).await;
            if result.is_ok_and(|result| result.json() == &Value::Bool(true)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let page = self.driver.source().await.unwrap_or_default();
        panic!("waited in vain for {script}:\n{page}");
    }

    /// Presses keys, which go to whatever has the focus.
    pub(super) async fn press(&self, keys: impl AsRef<str>) {
        let chain = self.driver.action_chain().send_keys(keys.as_ref());
        chain.perform().await.expect("keys can be pressed");
    }

    /// Presses Tab until the element has the focus, as a user does who has no mouse.
    pub(super) async fn tab_to(&self, css: &str) {
        for _ in 0..200 {
            self.press(char::from(Key::Tab).to_string()).await;
            if self.has_focus(css).await {
                return;
            }
        }
        panic!("Tab does not lead to {css}");
    }

    /// Waits until the element has the focus: a screen reader begins there.
    pub(super) async fn wait_for_focus(&self, css: &str) {
        self.wait_for(&format!("document.activeElement.matches({})", json!(css))).await;
    }

    pub(super) async fn has_focus(&self, css: &str) -> bool {
        self.run(&format!("return document.activeElement.matches({})", json!(css))).await == true
    }

    pub(super) async fn enter(&self) {
        self.press(char::from(Key::Enter).to_string()).await;
    }

    pub(super) async fn click(&self, css: &str) {
        let element = self.driver.find(By::Css(css)).await.expect("the element is there");
        element.click().await.expect("it can be clicked");
    }

    /// As a phone, or as a screen.
    pub(super) async fn resize(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// What the user prefers, such as a dark scheme.
    pub(super) async fn prefer(&self, feature: &str, value: &str) {
        let features = json!({ "features": [{ "name": feature, "value": value }] });
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    pub(super) async fn screenshot(&self, name: &str) {
        let path = self.screenshots.join(format!("{name}.png"));
        self.driver.screenshot(&path).await.expect("a picture can be taken");
    }

    /// Errors and warnings on the console since the last call.
    pub(super) async fn complaints(&self) -> Vec<String> {
        let log = self.driver.browser_log().await.expect("there is a log");
        let bad = log.into_iter().filter(|entry| entry.level != "INFO" && entry.level != "DEBUG");
        bad.map(|entry| format!("{}: {}", entry.level, entry.message)).collect()
    }
}
