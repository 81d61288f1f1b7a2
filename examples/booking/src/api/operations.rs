use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::{ApiError, Problem};

/// What is asked is asked with this bound.
const PATIENCE: Duration = Duration::from_secs(2);

/// That it lives, or is ready.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    status: &'static str,
}

/// Whether the process lives. It asks nobody: a restart would mend nothing that it could find.
#[utoipa::path(
    get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "It does.", body = Health)),
)]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Whether requests are to be sent here: the locks and the database answer, and it does not end.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "They are.", body = Health),
        (status = 503, description = "They are not; the log says why.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Json<Health>, ApiError> {
    if state.ended.is_cancelled() {
        return Err(ApiError::Unavailable);
    }
    let both = async { tokio::join!(state.locks.ping(), state.repository.ping()) };
    let Ok((locks, database)) = tokio::time::timeout(PATIENCE, both).await else {
        tracing::warn!("not ready: no answer within {PATIENCE:?}");
        return Err(ApiError::Unavailable);
    };
    locks.map_err(|error| {
        tracing::warn!(error = ?error.to_string(), "not ready: the locks do not answer");
        ApiError::Unavailable
    })?;
    database?;
    Ok(Json(Health { status: "ready" }))
}

/// The service's numbers, in the text format of OpenMetrics.
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "The numbers.", content_type = "application/openmetrics-text", body = String)),
)]
pub(super) async fn metrics(
    State(state): State<AppState>,
) -> Result<([(HeaderName, &'static str); 1], String), ApiError> {
    const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = state.metrics.text(&state.locks).map_err(|_| ApiError::Internal)?;
    Ok(([(header::CONTENT_TYPE, KIND)], text))
}
