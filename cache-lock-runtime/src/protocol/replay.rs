//! Walks through the model of the protocol (`models/`), replayed on the machine and on the
//! scripts.
//!
//! There is a key queue for each manager of the model, and a real server. What happens to a manager in
//! a step happens to its queue; the clock is the walk's, and so is the network: when a request
//! reaches the server, when an answer or a push is read, and what is lost. The requests are the
//! machine's, carried out by the scripts, and the answers that the machine is given are the
//! scripts'. After each step the effects, the phases and the server's records have to be the model's.
//!
//! Where the machine does the same as the model in another way, `Replay::check_sent` and `check_phase` say why
//! it is the same. Not replayed: turns that are missed for want of polling, deadlines of waiters, and the ends of managers, none of which the model
//! has; the times of a cohort, which are free in the model, see `KeyQueue::decide`; and what the
//! store does by itself when a connection is lost (it releases again, and forgets), which is the
//! model's, carried out by the scripts.
//!
//! A walk is the same each time, so what differs once differs again. `REPLAY=100` takes a hundred times
//! as many walks.

use std::{collections::BTreeSet, sync::Arc};

use lock_model::{
    Action, Config, Health, Inbox, Kinds, ManagerView, PhaseView, Request, Step, Token, View, trace,
};

use self::manager::{OpenRequest, ReplayedManager};
use super::{
    cohort::Succession,
    effects::Effects,
    messages::{AcquireRequest, Extension, ReleaseRequest, RequestKind},
    view::Seen,
};
use crate::{
    owner::{OwnerToken, TokenSource},
    store::redis::replay::{Asked, ReplayServer, TICK, TIMES, Tokens},
};

mod manager;

/// Walks of at most so many steps.
const STEPS: usize = 500;

struct Replay<'a> {
    config: &'a Config,
    server: &'a mut ReplayServer,
    managers: Vec<ReplayedManager>,
    tokens: Tokens,
    /// For choices that the walk leaves open.
    salt: usize,
}

impl Replay<'_> {
    fn step(&mut self, before: &View, step: &Step) -> Result<(), String> {
        self.pass_time(step.action);
        self.serve(before, step)?;
        if let Some(id) = step.action.manager() {
            let id = usize::from(id);
            let (then, now) = (&before.managers[id], &step.after.managers[id]);
            self.happen(id, then, step)?;
            self.check_sent(id, then, now, step)?;
        }
        for (manager, view) in self.managers.iter().zip(&step.after.managers) {
            if view.health != Health::Crashed {
                let told = |error| format!("{error}; the queue is {:?}", manager.queue);
                check_phase(&mut self.tokens, manager, view).map_err(told)?;
            }
        }
        self.server.check_records(&step.after, &self.tokens)
    }

    fn pass_time(&mut self, action: Action) {
        let lagging = match action {
            Action::Tick | Action::SlowTick => None,
            Action::LagTick(id) => Some(usize::from(id)),
            Action::Flush => return self.server.flush(),
            Action::ForeignEnds => return self.server.delete_lock(),
            Action::DropInbox(id) => return self.server.close_inbox(usize::from(id)),
            Action::Reconnect(id) if self.config.push => {
                return self.server.open_inbox(usize::from(id));
            }
            _ => return,
        };
        self.server.tick();
        for (id, manager) in self.managers.iter_mut().enumerate() {
            if lagging != Some(id) {
                manager.now = manager.now + TICK;
            }
        }
    }

    /// The server carries out what it does in the walk.
    fn serve(&mut self, before: &View, step: &Step) -> Result<(), String> {
        let Some(served) = &step.served else { return Ok(()) };
        let id = usize::from(step.action.manager().ok_or("a request without a manager")?);
        let manager = &mut self.managers[id];
        let flight = if matches!(step.action, Action::ServeLate(_)) {
            let late = manager.late.pop_front().filter(|late| late.request == served.request);
            &mut late.ok_or("another request was late")?
        } else {
            let open = |flight: &&mut OpenRequest| {
                flight.value.is_none() && flight.request == served.request
            };
            manager.flights.iter_mut().find(open).ok_or("another request is on its way")?
        };
        let (value, pushes) = self.server.serve(&flight.asked)?;
        self.server.check_answer(&flight.asked, &value, served)?;
        self.server.check_pushes(&pushes, served, &step.after, &self.tokens)?;
        flight.value = Some(value);
        for ((manager, pushes), view) in self.managers.iter_mut().zip(pushes).zip(&before.managers)
        {
            // A manager that does not listen any more gets them, and does not see them.
            let pushes = pushes.into_iter().filter(|_| view.inbox == Inbox::Live);
            for push in pushes {
                if !manager.pushes.contains(&push) {
                    manager.pushes.push(push);
                }
            }
        }
        Ok(())
    }

    /// What happens to a manager happens to its queue.
    fn happen(&mut self, id: usize, then: &ManagerView, step: &Step) -> Result<(), String> {
        let manager = &mut self.managers[id];
        match step.action {
            Action::Arrive(_) => {
                let short = self.config.mixed && (self.config.waiters - then.to_come) % 2 == 1;
                let expire = if short { TIMES.expire - 2 } else { TIMES.expire };
                manager.arrive(TICK * u32::from(expire));
            }
            Action::Cancel(_) => manager.cancel(self.salt, then.connected)?,
            Action::HandOver(_) => manager.end(Succession::HandOver)?,
            Action::End(_) => manager.end(Succession::Pass)?,
            Action::Yield(_) => manager.end(Succession::Yield)?,
            Action::Lose(_) => manager.lose()?,
            Action::Timer(_) => manager.on_timer(),
            Action::Reply(_) => {
                let read = |flight: &OpenRequest| Some(flight.request) == step.answered;
                let flight = manager.flights.iter().position(read).ok_or("no such request")?;
                let flight = manager.flights.remove(flight);
                manager.answered(&flight)?;
            }
            Action::Push(..) | Action::LosePush(..) => {
                let push = step.push.ok_or("no push")?;
                let is_it = |real: &_| self.server.is_same(push, real, &self.tokens);
                let push = manager.pushes.iter().position(is_it).ok_or("no such push")?;
                let push = manager.pushes.remove(push);
                if matches!(step.action, Action::Push(..)) {
                    manager.pushed(&push)?;
                }
            }
            Action::Cut(_, late) => {
                manager.cut(late);
                manager.disconnected(self.salt);
            }
            Action::Crash(_, late) => manager.cut(late),
            Action::Reconnect(_) => {
                let expected = step.sent.iter().copied().find(asks);
                manager.reconnected(|request| expected.is_some_and(|it| is_like(request, it)));
            }
            _ => {}
        }
        if let Some(began) = step.began {
            let number = self.managers[id].begin()?;
            if began.number.and_then(|number| self.server.number(number)) != Some(number) {
                return Err(format!("a section begins with {number}, which is another's"));
            }
        }
        Ok(())
    }

    /// Whether the machine wants the requests sent that the model sends, and sends what
    /// the model sends.
    ///
    /// What the model forgets and the queue does not:
    /// - *What the server has never seen*, or is known to have no more. The queue knows, the model
    ///   sends a release that finds nothing.
    /// - *What is being released already.* A section whose lease was lost is released as others are,
    ///   and while there is no answer, with or without a connection, a queue is *releasing*. The
    ///   model has then no waiter and no request out: it is *idle*.
    ///
    /// Of the latter the queue may release what the model has a release on its way for.
    fn check_sent(
        &mut self,
        id: usize,
        then: &ManagerView,
        now: &ManagerView,
        step: &Step,
    ) -> Result<(), String> {
        let effects = std::mem::take(&mut self.managers[id].effects);
        let all: Vec<_> = step.sent.iter().chain(&step.kept).copied().collect();
        // What the store does by itself, and the renewer.
        let not_the_places = match step.action {
            Action::Cut(..) | Action::ForgetAgain(_) | Action::Renew(_) => all.len(),
            Action::Reconnect(_) => then.unsent.len(),
            _ => 0,
        };
        let queues = &all[not_the_places..];
        let over = queues.iter().find_map(|request| request.takes_back());
        match (over, &effects.release) {
            (Some(over), Some(ended)) if self.tokens.get(&over) == Some(&ended.token) => {}
            (over, ended) => {
                let spared = over.iter().all(|&over| self.is_spared(id, then, over, step));
                let is_again =
                    |ended: &ReleaseRequest| is_being_released(&self.tokens, then, &ended.token);
                if !spared || !ended.iter().all(is_again) {
                    return Err(format!("releases {ended:?} instead of {over:?}"));
                }
            }
        }
        let expected = queues.iter().copied().find(asks);
        match (expected, &effects.acquire) {
            (None, None) => {}
            (None, Some(_)) if !now.connected => self.managers[id].unsent = effects.acquire.clone(),
            (Some(expected), Some(request)) => self.check_acquire(now, expected, request)?,
            (expected, request) => {
                return Err(format!("asks {request:?} instead of {expected:?}"));
            }
        }
        self.send(id, &step.sent, effects)
    }

    /// Whether a token need not be released by the queue of a manager.
    fn is_spared(&self, id: usize, then: &ManagerView, token: Token, step: &Step) -> bool {
        let Some(real) = self.tokens.get(&token) else { return true };
        let manager = &self.managers[id];
        let is_passed_on = match manager.queue.seen() {
            Seen::Releasing(token) => token == *real,
            Seen::Asking { old, .. } => old.as_ref() == Some(real),
            _ => false,
        };
        if is_passed_on && manager.has_released(&self.tokens, then, real) {
            return true;
        }
        let may_come = |flight: &OpenRequest| {
            flight.value.is_none()
                && matches!(&flight.asked, Asked::Acquire { request, .. } if request.token == *real)
        };
        !matches!(step.action, Action::Push(..))
            && !self.server.knows(real)
            && !manager.flights.iter().chain(&manager.late).any(may_come)
    }

    fn check_acquire(
        &mut self,
        now: &ManagerView,
        expected: Request,
        request: &AcquireRequest,
    ) -> Result<(), String> {
        let (token, real_old) = (&request.token, request.kind.old());
        let same_tokens = match expected {
            Request::Acquire { token: expected, .. } => {
                pair(&mut self.tokens, expected, token)
                    && real_old.iter().all(|old| is_being_released(&self.tokens, now, old))
            }
            Request::Pass { token: old, new, .. } => {
                pair(&mut self.tokens, new, token) && real_old == self.tokens.get(&old)
            }
            _ => false,
        };
        if same_tokens && is_like(request, expected) {
            Ok(())
        } else {
            Err(format!("asks {request:?} instead of {expected:?}"))
        }
    }

    /// Puts requests on the connection: the queue's own request and release, and those of the
    /// store and the renewer.
    fn send(&mut self, id: usize, sent: &[Request], effects: Effects) -> Result<(), String> {
        let (mut acquire, release) = (effects.acquire, effects.release);
        for &request in sent {
            let real = |token| self.tokens.get(&token).cloned().ok_or(format!("no {token:?} yet"));
            let asked = match request {
                Request::Acquire { .. } | Request::Pass { .. } => {
                    let request = acquire.take().ok_or("two requests")?;
                    Asked::Acquire { request, heard: self.config.push }
                }
                Request::Release { token, .. } | Request::Forget { token } => {
                    let token = real(token)?;
                    let own = release.as_ref().filter(|release| release.token == token).cloned();
                    let yields = matches!(request, Request::Release { yields: true, .. });
                    // What is sent again, or by the store.
                    let again = ReleaseRequest {
                        token,
                        expire: TICK * 4,
                        lasts: crate::clock::Instant::FAR,
                        yields,
                    };
                    Asked::Release(own.unwrap_or(again))
                }
                Request::Extend { token, expire } => {
                    let (key, expire) = (self.server.key.clone(), TICK * u32::from(expire));
                    Asked::Extension(Extension { key, token: real(token)?, expire })
                }
            };
            let manager = &mut self.managers[id];
            let sent_at = manager.now;
            manager.flights.push(OpenRequest { request, asked, sent_at, value: None });
        }
        Ok(())
    }
}

/// Compares the phase of a manager's queue with the model's.
///
/// While there is no connection, *asking* in the model is either a request that waits for one, or
/// a pause after one could not be opened.
fn check_phase(
    tokens: &mut Tokens,
    manager: &ReplayedManager,
    view: &ManagerView,
) -> Result<(), String> {
    let mut is = |expected, real: &OwnerToken| pair(tokens, expected, real);
    let seen = manager.queue.seen();
    let agrees = match (view.phase, &seen) {
        (PhaseView::Idle, Seen::Idle) => true,
        (PhaseView::Idle, Seen::Releasing(token)) => is_being_released(tokens, view, token),
        (PhaseView::Releasing { token, .. }, Seen::Releasing(real)) => is(token, real),
        (PhaseView::Yielded { .. }, Seen::Yielded(_)) => true,
        (
            PhaseView::Asking { token, granted },
            Seen::Asking { token: real, old, granted: told },
        ) => {
            granted == *told
                && is(token, real)
                && old.iter().all(|old| manager.has_released(tokens, view, old))
        }
        (
            PhaseView::Passing { old, new, granted },
            Seen::Asking { token, old: Some(real_old), granted: told },
        ) => granted == *told && is(new, token) && is(old, real_old),
        (PhaseView::Asking { token, .. }, Seen::Registered { token: real, old, .. }) => {
            !view.connected && is(token, real) && old.is_none()
        }
        (
            PhaseView::Registered { token, timer: Some(timer) },
            Seen::Registered { token: real, old, due },
        ) => {
            // A manager without pushes asks sooner: it is after other locks than the model's.
            let latest = TICK * u32::from(timer) + TICK / 8;
            is(token, real) && old.is_none() && *due - manager.now <= latest
        }
        (
            PhaseView::Holding { token, validity, left },
            Seen::Holding { token: real, lease, left: numbers },
        ) => {
            is(token, real)
                && manager.section.as_ref().is_some_and(|section| Arc::ptr_eq(section, lease))
                && lease.deadline() - manager.now == TICK * u32::from(validity)
                && usize::from(left) == *numbers
        }
        _ => false,
    };
    if !agrees {
        return Err(format!("{seen:?} instead of {:?}", view.phase));
    }
    if manager.queue.waiters() != usize::from(view.queue) {
        return Err(format!("{} wait instead of {}", manager.queue.waiters(), view.queue));
    }
    Ok(())
}

/// Whether a real token is the one for a token of the model's, each for one alone.
fn pair(tokens: &mut Tokens, expected: Token, real: &OwnerToken) -> bool {
    if let Some(known) = tokens.get(&expected) {
        return known == real;
    }
    let is_new = !tokens.values().any(|known| known == real);
    if is_new {
        tokens.insert(expected, real.clone());
    }
    is_new
}

fn is_being_released(tokens: &Tokens, view: &ManagerView, real: &OwnerToken) -> bool {
    let is_it =
        |request: &Request| request.takes_back().and_then(|over| tokens.get(&over)) == Some(real);
    view.unsent.iter().any(is_it) || view.flights.iter().any(|(request, _)| is_it(request))
}

fn is_like(request: &AcquireRequest, expected: Request) -> bool {
    match expected {
        Request::Acquire { expire, block, .. } | Request::Pass { expire, block, .. } => {
            request.wait
                && yields(request) == matches!(expected, Request::Pass { yields: true, .. })
                && request.expire == TICK * u32::from(expire)
                && request.block == u32::from(block)
        }
        _ => false,
    }
}

fn yields(request: &AcquireRequest) -> bool {
    matches!(&request.kind, RequestKind::Pass(old) if old.yields)
}

fn asks(request: &Request) -> bool {
    matches!(request, Request::Acquire { .. } | Request::Pass { .. })
}

/// Takes walks, and returns the names of all actions in them.
fn walk(name: &str, config: Config, walks: u64) -> BTreeSet<String> {
    let waiters = u16::from(config.waiters);
    // As many numbers as are asked for are there, since so much time goes by on a real server.
    let config = Config { times: TIMES, block: waiters, pace: waiters, ..config };
    let more = std::env::var("REPLAY").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let sources: Vec<_> = (0..config.managers).map(|_| Arc::new(TokenSource::new())).collect();
    let mut server = ReplayServer::start(&sources, config.push);
    let (mut actions, mut steps, mut requests) = (BTreeSet::new(), 0_u64, 0_u64);
    for seed in 0..walks * more {
        let managers =
            sources.iter().map(|sources| ReplayedManager::new(&server.key, sources)).collect();
        server.begin(&config);
        let (config, server, tokens) = (&config, &mut server, Tokens::new());
        let mut replay = Replay { config, server, managers, tokens, salt: 0 };
        let walk = trace(config.clone(), seed, STEPS);
        let mut before = walk.view();
        for (number, step) in walk.enumerate() {
            replay.salt = number + usize::try_from(seed).unwrap_or(0);
            if let Err(difference) = replay.step(&before, &step) {
                let action = step.action;
                panic!("{name}, seed {seed}, step {number}, {action:?}: {difference}\n{step:?}");
            }
            steps += 1;
            requests += u64::from(step.served.is_some());
            let action = format!("{:?}", step.action);
            actions.insert(action.split('(').next().unwrap_or_default().to_owned());
            before = step.after;
        }
    }
    #[expect(clippy::print_stderr, reason = "how much was compared must be seen")]
    let () = eprintln!("{name}: {} walks, {steps} steps, {requests} requests", walks * more);
    assert!(steps > 10 * walks, "only {steps} steps in {walks} walks");
    actions
}

fn large() -> Config {
    let waiters = 12;
    Config {
        managers: 3,
        waiters,
        faults: 12,
        cancels: 8,
        renewals: 8,
        yields: 4,
        ..Config::default()
    }
}

#[test]
fn two_managers_of_two_waiters() {
    let config = Config { faults: 0, renewals: 2, yields: 1, cancels: 1, ..Config::default() };
    walk("2 x 2, no faults", config.clone(), 400);
    walk("2 x 2", Config { faults: 3, ..config }, 800);
}

#[test]
fn each_kind_of_fault() {
    const KINDS: [(&str, Kinds); 8] = [
        ("cut", Kinds { cut: true, ..Kinds::NONE }),
        ("crash", Kinds { crash: true, ..Kinds::NONE }),
        ("pause", Kinds { pause: true, ..Kinds::NONE }),
        ("flush", Kinds { flush: true, ..Kinds::NONE }),
        ("lost push", Kinds { lost_push: true, ..Kinds::NONE }),
        ("slow", Kinds { slow: true, ..Kinds::NONE }),
        ("stall", Kinds { stall: true, ..Kinds::NONE }),
        ("lag", Kinds { lag: true, ..Kinds::NONE }),
    ];
    for (name, kinds) in KINDS {
        walk(name, Config { managers: 3, waiters: 4, faults: 6, kinds, ..large() }, 80);
    }
}

#[test]
fn three_managers_of_twelve_waiters() {
    let actions = walk("3 x 12", large(), 400);
    let all = [
        "Arrive",
        "Cancel",
        "Crash",
        "Cut",
        "DropInbox",
        "End",
        "Flow",
        "Flush",
        "ForgetAgain",
        "HandOver",
        "LagTick",
        "Lose",
        "LosePush",
        "Overtake",
        "Pause",
        "Push",
        "Reconnect",
        "Renew",
        "Reply",
        "Resume",
        "Serve",
        "ServeLate",
        "SlowTick",
        "Stall",
        "Tick",
        "Timer",
        "Yield",
    ];
    assert_eq!(actions, all.map(String::from).into());
}

/// Without cancellations, after which another waiter may lead than the one whose lease was asked
/// for. The code may pass on then what the model takes.
#[test]
fn leases_of_two_lengths() {
    walk("mixed", Config { mixed: true, cancels: 0, ..large() }, 240);
}

#[test]
fn a_foreign_holder() {
    walk("foreign", Config { foreign: true, ..large() }, 160);
}

#[test]
fn a_server_without_pushes() {
    walk("no pushes", Config { push: false, ..large() }, 160);
}
