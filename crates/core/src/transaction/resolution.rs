//! A commit whose outcome the coordinator does not tell, and that is learned elsewhere: from its marker in a log.

use super::{State, Transaction, TxnError, TxnErrorKind};
use kafka_share_messages::InitProducerIdRequest;

impl Transaction {
    /// After a commit that was refused: the request that has the coordinator end the transaction, if it has not, so that its
    /// marker is written. It goes on with [`Transaction::handle_init`]. `None` where the same commit may be tried again, or
    /// where nothing can follow.
    pub fn start_resolution(&mut self) -> Option<InitProducerIdRequest> {
        match &self.state {
            State::Dead(error) if error.kind == TxnErrorKind::Fenced => {
                self.state = State::Failed { error: error.clone(), over: true };
            }
            State::Failed { over: true, .. } => {}
            _ => return None,
        }
        Some(self.init_request(self.identity))
    }

    /// The marker says that the transaction was aborted: abort here too, then begin a new one.
    pub fn handle_found_aborted(&mut self, text: impl Into<String>) -> TxnError {
        let error = TxnError::new(TxnErrorKind::Aborted, text);
        if !matches!(self.state, State::Dead(_)) {
            self.state = State::Failed { error: error.clone(), over: true };
        }
        error
    }
}
