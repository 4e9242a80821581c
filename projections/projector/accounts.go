package projector

import (
	"context"
	"errors"
	"sync"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// This file stops single accounts. Two kinds of errors stop one account and leave the others alone: an event that cannot be
// used, and a personal field that cannot be decrypted. All other errors (vault, database, log) stop the whole projection,
// which retries. A stopped account has a row in account_status, written in the transaction of the batch. Its later events are
// left out of the rows until a refold (refold.go) has rewritten its rows from its streams.
//
//	Model.decodeEvent ──> stoppingEvent: stopErr ──> filterEvents ──> kept ──> Model.foldEvents
//	                                                       ├──> account_status
//	                                                       └──> toLog, needsRefold ──> logAccounts, refoldStoppedAccounts

// stopKind returns the kind of stop (table.AccountUnusable, table.AccountUnreadable) that an error means for an account, or
// table.AccountRunning if it stops the whole projection.
func stopKind(err error) string {
	var unusable *eventstore.UnusableError
	var unreadable *eventstore.UnreadableError
	switch {
	case errors.As(err, &unusable):
		return table.AccountUnusable
	case errors.As(err, &unreadable):
		return table.AccountUnreadable
	}
	return table.AccountRunning
}

// stoppingEvent returns a decoded event that stops its account, or err if it stops the whole projection.
func (m Model) stoppingEvent(r eventstore.RecordedEvent, err error) (decodedEvent, error) {
	if stopKind(err) == table.AccountRunning {
		return decodedEvent{}, err
	}
	return decodedEvent{record: Record{RecordedEvent: r}, stopErr: err, stoppedOwner: m.sharedOwner(r)}, nil
}

// sharedOwner is Model.SharedOwner, "" without it.
func (m Model) sharedOwner(r eventstore.RecordedEvent) string {
	if m.SharedOwner == nil {
		return ""
	}
	return m.SharedOwner(r)
}

// owner is what the event is dropped with, and what it stops if it cannot be used.
func (d decodedEvent) owner(stopped map[string]table.AccountStatus) string {
	owner := table.StreamOwner(d.record.Stream)
	if _, isStreamStopped := stopped[owner]; d.stoppedOwner != "" && !isStreamStopped {
		return d.stoppedOwner
	}
	return owner
}

// nextStatus returns the status of the event's account after the event.
func (d decodedEvent) nextStatus(s table.AccountStatus) table.AccountStatus {
	s.Kind, s.Reason = stopKind(d.stopErr), ""
	if d.stopErr != nil {
		s.Reason = d.stopErr.Error()
	}
	s.Stream, s.Revision, s.Position = d.record.Stream, int64(d.record.Revision), int64(d.record.Position)
	return s
}

// accountFilter drops the events of stopped accounts from one batch, inside its transaction. An owner is the account or token
// whose stream an event is in (table.StreamOwner).
type accountFilter struct {
	stopped         map[string]table.AccountStatus // by owner
	correctedOwners map[string]bool                // owners of streams with events that corrections void
	changed         map[string]table.AccountStatus // by owner: statuses to write in the transaction
	erased          map[string]eventstore.Position // stopped accounts whose erasure is skipped, with its position
	toLog           []table.AccountStatus          // statuses to log once the transaction is committed
	kept            []decodedEvent                 // to be folded
}

// filterEvents selects the events to fold (accountFilter.kept) and writes the changed statuses of accounts.
func filterEvents(ctx context.Context, tx *sqldb.Tx, decoded []decodedEvent) (*accountFilter, error) {
	rows, err := sqldb.Select(ctx, tx, table.AccountStatuses, "where kind <> '' or voided > 0")
	if err != nil {
		return nil, err
	}
	v := &accountFilter{stopped: map[string]table.AccountStatus{}, correctedOwners: map[string]bool{}, changed: map[string]table.AccountStatus{},
		erased: map[string]eventstore.Position{}}
	for _, s := range rows {
		if v.correctedOwners[s.Account] = s.VoidedEvents > 0; s.IsStopped() {
			v.stopped[s.Account] = s
		}
	}
	if err := v.loadStatuses(ctx, tx, decoded); err != nil {
		return nil, err
	}
	for _, d := range decoded {
		v.filterEvent(d)
	}
	changed := make([]table.AccountStatus, 0, len(v.changed))
	for _, s := range v.changed {
		changed = append(changed, s)
	}
	return v, sqldb.Upsert(ctx, tx, table.AccountStatuses, changed)
}

// loadStatuses reads the statuses of running accounts that these events will change.
func (v *accountFilter) loadStatuses(ctx context.Context, tx *sqldb.Tx, decoded []decodedEvent) error {
	seen := map[string]bool{}
	var owners []string
	for _, d := range decoded {
		owner := d.owner(v.stopped)
		if _, stopped := v.stopped[owner]; d.changesStatus() && !stopped && !seen[owner] {
			seen[owner], owners = true, append(owners, owner)
		}
	}
	rows, err := sqldb.LoadByKeys(ctx, tx, table.AccountStatuses, owners)
	for _, s := range rows {
		v.changed[s.Account] = s
	}
	return err
}

// changesStatus reports whether the event changes its account's status.
func (d decodedEvent) changesStatus() bool {
	return d.stopErr != nil || d.isEmptyCommit || d.isCorrection()
}

// isCorrection reports whether the event is a correction, which voids another event of its stream.
func (d decodedEvent) isCorrection() bool {
	_, ok := d.event.(event.Correction)
	return ok
}

// filterEvent keeps an event, or drops it and changes the status of its account. It keeps the events of running accounts that
// change no status. A correction asks for a refold, an empty commit of a running account is counted and logged, and any other
// event that cannot be used stops the account. For a stopped account it notes only the last position, for the refold.
func (v *accountFilter) filterEvent(d decodedEvent) {
	owner := d.owner(v.stopped)
	s, stopped := v.stopped[owner]
	if !stopped {
		if s = v.changed[owner]; !d.changesStatus() {
			v.kept = append(v.kept, d)
			return
		}
	}
	s.Account, s.LastSkipped = owner, int64(d.record.Position)
	if _, erased := d.event.(event.AccountErased); erased && s.Kind != table.AccountRefolding { // a running refold applies the erasure itself, or leaves no rows
		v.erased[owner] = d.record.Position
	}
	switch {
	case d.isCorrection():
		s.Kind, s.Reason = table.AccountRefolding, "its rows are being written again"
		s.Stream, s.Revision, s.Position = d.record.Stream, int64(d.record.Revision), int64(d.record.Position)
	case !stopped && d.isEmptyCommit:
		if s.FirstEmptyCommit == 0 {
			s.FirstEmptyCommit = int64(d.record.Position)
		}
		v.toLog = append(v.toLog, table.AccountStatus{Account: owner, FirstEmptyCommit: int64(d.record.Position)})
	case !stopped:
		s = d.nextStatus(s)
		v.toLog = append(v.toLog, s)
	}
	if v.changed[owner] = s; s.IsStopped() {
		v.stopped[owner] = s
	}
}

// dropErased deletes the rows of stopped accounts that were erased: personal data in them must not wait for a repair.
func (v *accountFilter) dropErased(m Model, b *Changeset) {
	if !m.NeedsPersonalData {
		return
	}
	for owner, at := range v.erased {
		m.DropRows(b, owner, at)
		if m.EraseRows != nil {
			m.EraseRows(b, owner)
		}
	}
}

// needsRefold reports whether the rows of an account must be rewritten now.
func (v *accountFilter) needsRefold() bool {
	for _, s := range v.changed {
		if s.Kind == table.AccountRefolding {
			return true
		}
	}
	return false
}

// logAccounts logs the changes of accounts. Several generations meet the same event, which is logged only once.
func (w *worker) logAccounts(changes []table.AccountStatus) {
	for _, s := range changes {
		switch {
		case !w.logged.markLogged(s.Account, max(s.Position, s.FirstEmptyCommit)):
		case s.IsStopped():
			w.log.Error("account stopped", "account", s.Account, "kind", s.Kind, "position", s.Position, "reason", s.Reason)
		default:
			w.log.Warn("a commit without a sync id changed nothing and is passed over", "account", s.Account, "position", s.FirstEmptyCommit)
		}
	}
}

// loggedIncidents remembers what was logged. It is safe for concurrent use.
type loggedIncidents struct {
	mu   sync.Mutex
	seen map[incident]bool
}

// incident is one event of an account that cannot be used.
type incident struct {
	account  string
	position int64
}

// markLogged remembers an incident, and reports whether it is new.
func (s *loggedIncidents) markLogged(account string, position int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[incident]bool{}
	}
	seen := s.seen[incident{account, position}]
	s.seen[incident{account, position}] = true
	return !seen
}
