//! Which batches of a fetch belong to aborted transactions (KIP-98).

use kafka_share_messages::fetch_response::AbortedTransaction;
use kafka_share_wire::records::{ControlRecordType, DecodedBatch};
use std::collections::HashSet;

/// Filters one fetch answer of one partition; batches must come in order.
#[derive(Debug, Default)]
pub(super) struct AbortFilter {
    /// Not yet reached, the first last.
    coming: Vec<AbortedTransaction>,
    open: HashSet<i64>,
}

impl AbortFilter {
    pub(super) fn new(aborted: Option<&[AbortedTransaction]>) -> Self {
        let mut coming = aborted.unwrap_or_default().to_vec();
        coming.sort_by_key(|a| std::cmp::Reverse(a.first_offset));
        AbortFilter { coming, open: HashSet::new() }
    }

    /// Whether the application may see the batch's records. Never those of control batches.
    pub(super) fn admits(&mut self, batch: &DecodedBatch) -> bool {
        while let Some(next) = self.coming.pop_if(|a| a.first_offset <= batch.last_offset()) {
            self.open.insert(next.producer_id);
        }
        if batch.is_control() {
            if is_abort(batch) {
                self.open.remove(&batch.producer_id);
            }
            return false;
        }
        !(batch.is_transactional() && self.open.contains(&batch.producer_id))
    }
}

/// A control batch holds one record; should there be more, the first counts.
fn is_abort(batch: &DecodedBatch) -> bool {
    let first = batch.control_records().ok().and_then(|mut records| records.next());
    matches!(first, Some(Ok(record)) if record.kind == ControlRecordType::Abort)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions, EndTxnMarker};

    fn data(base_offset: i64, producer_id: i64, into: BytesMut) -> BytesMut {
        let options = BatchOptions {
            base_offset,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            transactional: true,
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::with_buffer(options, into);
        builder.append(0, None, Some(b"v"), []).unwrap();
        builder.finish().unwrap()
    }

    fn marker(base_offset: i64, producer_id: i64, commit: bool, into: BytesMut) -> BytesMut {
        EndTxnMarker { commit, coordinator_epoch: 0, producer_id, producer_epoch: 0 }
            .write(base_offset, 0, 0, into)
            .unwrap()
    }

    fn admitted(log: BytesMut, aborted: &[(i64, i64)]) -> Vec<i64> {
        let row = |(producer_id, first_offset): &(i64, i64)| AbortedTransaction {
            producer_id: *producer_id,
            first_offset: *first_offset,
            ..AbortedTransaction::default()
        };
        let aborted: Vec<AbortedTransaction> = aborted.iter().map(row).collect();
        let mut filter = AbortFilter::new(Some(&aborted));
        let batches = BatchIter::new(log.freeze()).map(|b| b.unwrap().decode(1 << 20).unwrap());
        batches.filter_map(|b| filter.admits(&b).then_some(b.base_offset)).collect()
    }

    #[test]
    fn r071_only_an_abort_marker_ends_the_filter() {
        let mut log = data(0, 1, BytesMut::new());
        log = marker(1, 1, true, log);
        log = data(2, 1, log);
        log = marker(3, 1, false, log);
        log = data(4, 1, log);
        log = marker(5, 1, true, log);
        assert_eq!(admitted(log, &[(1, 2)]), [0, 4]);
    }

    #[test]
    fn transactions_of_several_producers_interleave() {
        let mut log = data(0, 1, BytesMut::new());
        log = data(1, 2, log);
        log = marker(2, 2, true, log);
        log = data(3, 1, log);
        log = marker(4, 1, false, log);
        log = data(5, 1, log);
        assert_eq!(admitted(log, &[(1, 0)]), [1, 5]);
    }

    #[test]
    fn r073_two_markers_in_one_batch_count_as_one() {
        let options = BatchOptions {
            base_offset: 1,
            producer_id: 1,
            producer_epoch: 0,
            transactional: true,
            control: true,
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::with_buffer(options, data(0, 1, BytesMut::new()));
        for _ in 0..2 {
            builder.append(0, Some(&[0, 0, 0, 0]), Some(&[0, 0, 0, 0, 0, 0]), []).unwrap();
        }
        let log = data(3, 1, builder.finish().unwrap());
        assert_eq!(admitted(log, &[(1, 0)]), [3]);
    }
}
