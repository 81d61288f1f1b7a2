use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::fields::Fields;
use super::request::IdempotencyKey;
use super::views::{Account, Credentials, TokenView};
use crate::accounts;
use crate::app::AppState;
use crate::client_address::ClientAddress;
use crate::domain::{Email, Password};
use crate::error::{ApiError, Problem};

/// Opens an account. To send it again with the same `Idempotency-Key` opens it once.
#[utoipa::path(
    post, path = "/register", tag = "users",
    params(("Idempotency-Key" = Option<String>, Header, description = "Names the request, so that it can be sent again: 1 to 128 visible characters, such as a UUID.")),
    request_body = Credentials,
    security(()),
    responses(
        (status = 201, description = "The account is there.", body = Account),
        (status = 400, description = "A field is wrong: which, and why.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "There is an account with this address.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body has more than 16 KiB.", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The `Idempotency-Key` was used with another password.", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many accounts from this address; see `Retry-After`.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available. `type` tells whether the outcome is open.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn register(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    IdempotencyKey(key): IdempotencyKey,
    mut fields: Fields,
) -> Result<(StatusCode, Json<Account>), ApiError> {
    let email = fields.read("email", Email::parse);
    let password =
        fields.read("password", |text| Password::choose(text.to_owned(), email.as_ref()));
    let (email, password) = fields.finish(email.zip(password))?;
    let user = accounts::register_once(&state, address, email, password, key.as_ref()).await?;
    let account = Account { id: user.id, email: user.email.to_string(), role: user.role };
    Ok((StatusCode::CREATED, Json(account)))
}

/// Logs in.
#[utoipa::path(
    post, path = "/login", tag = "users",
    request_body = Credentials,
    security(()),
    responses(
        (status = 200, description = "A token.", body = TokenView),
        (status = 400, description = "A field is missing, or not a string.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The address or the password is wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body has more than 16 KiB.", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many logins; see `Retry-After`.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn login(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    mut fields: Fields,
) -> Result<Json<TokenView>, ApiError> {
    let email = fields.string("email");
    let password = fields.string("password");
    let (email, password) = fields.finish(email.zip(password))?;
    let token = accounts::login(&state, address, &email, Password::attempt(password)).await?;
    Ok(Json(TokenView { token: token.text, token_type: "Bearer", expires_at: token.expires }))
}
