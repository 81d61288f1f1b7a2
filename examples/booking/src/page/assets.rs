//! The page's style, script and icon, which are in the program.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

use axum::extract::Query;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::segment::Segment;
use crate::error::ApiError;

pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("style.css", "text/css; charset=utf-8", include_str!("assets/style.css"))
});
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("script.js", "text/javascript; charset=utf-8", include_str!("assets/script.js"))
});
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")));

/// A file.
pub(super) struct Asset {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
    hash: String,
}

impl Asset {
    fn new(name: &'static str, media_type: &'static str, text: &'static str) -> Self {
        let mut hash = String::new();
        for byte in &Sha256::digest(text)[..8] {
            let _ = write!(hash, "{byte:02x}");
        }
        Self { name, media_type, text, hash }
    }

    /// Where it is. Another text has another address, so a browser may keep it for good.
    pub(super) fn path(&self) -> String {
        format!("/page/assets/{}?v={}", self.name, self.hash)
    }
}

/// Sends an asset, unless the browser has it. If another version is asked for, which another replica
/// has named, this one is sent, and not kept.
pub(super) async fn serve(
    Segment(name): Segment,
    Query(version): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let all = [&STYLE, &SCRIPT, &ICON];
    let asset = all.into_iter().find(|asset| asset.name == name);
    let asset = asset.ok_or(ApiError::NotFound("There is no such path."))?;
    let keep = if version.get("v") == Some(&asset.hash) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let tag = format!("\"{}\"", asset.hash);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let known = known.flat_map(|tags| tags.split(',')).any(|known| known.trim() == tag);
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, asset.media_type)], asset.text).into_response()
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}
