//! The protocol as the checker sees it.

use stateright::{Model, Property};

use crate::{
    action::{self, Action},
    canonical::State,
    config::Config,
    message::Token,
    properties,
    state::{Budget, Claim, Ghost, Health, Inbox, Manager, Phase, Record, Server, World},
    step,
};

/// Managers, their waiters and a server, that contend for one key.
#[derive(Clone, Debug)]
pub struct LockModel {
    pub(crate) config: Config,
}

impl LockModel {
    /// The model of what `config` tells.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// What there is at first.
    pub(crate) fn initial(config: &Config) -> World {
        let foreign = Record { token: Token::FOREIGN, ttl: config.times.cap, claim: Claim::Asked };
        let server = Server {
            lock: config.foreign.then_some(foreign),
            fence: None,
            waiting: Vec::new(),
            waiting_ttl: 0,
            time: 10,
            epoch: 0,
        };
        let manager = Manager {
            health: Health::Up,
            connected: true,
            stalled: false,
            inbox: Inbox::Live,
            to_come: config.waiters,
            queue: 0,
            phase: Phase::Idle,
            serial: 0,
            flights: Vec::new(),
            late: Vec::new(),
            unsent: Vec::new(),
            strays: Vec::new(),
            pushes: Vec::new(),
        };
        let budget = Budget {
            faults: config.faults,
            cancels: config.cancels,
            renewals: config.renewals,
            yields: config.yields,
            lags: u8::from(config.kinds.lag),
        };
        let ghost = Ghost {
            top: 0,
            used: 0,
            reserved_again: false,
            ahead: false,
            disordered: false,
            lapsed: false,
            idle: 0,
        };
        let managers = vec![manager; usize::from(config.managers)];
        World { server, managers, ghost, budget }
    }

    /// The largest gap between numbers that matters.
    pub(crate) fn gap(&self) -> u16 {
        self.config.block + 1
    }
}

impl Model for LockModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State { world: Self::initial(&self.config), gap: self.gap() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        action::collect(&self.config, &state.world, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        step::apply(&self.config, &mut state.world, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
