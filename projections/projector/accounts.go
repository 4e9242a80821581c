package projector

import (
	"context"
	"errors"
	"sync"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Two kinds of errors stop one account and leave the others alone: an event that cannot be used, and a personal field
// that cannot be opened. All others (the vault, the database, the log) stop the projection, which tries again. A stopped
// account has a row in account_status, written in the transaction of the batch. Its later events are passed over until
// refold.go has written its rows again from its streams.

// kindOf is how an error stops an account, or "" where it stops the projection.
func kindOf(err error) string {
	var unusable *eventstore.UnusableError
	var unreadable *eventstore.UnreadableError
	switch {
	case errors.As(err, &unusable):
		return table.AccountUnusable
	case errors.As(err, &unreadable):
		return table.AccountUnreadable
	}
	return table.AccountRuns
}

// stoppedBy is a fact that stops its account, or the error where it stops the projection.
func stoppedBy(r eventstore.Recorded, err error) (fact, error) {
	if kindOf(err) == table.AccountRuns {
		return fact{}, err
	}
	return fact{record: Record{Recorded: r}, stop: err}, nil
}

// status is what the fact makes of its account's status.
func (f fact) status(s table.AccountStatus) table.AccountStatus {
	s.Kind, s.Reason = kindOf(f.stop), ""
	if f.stop != nil {
		s.Reason = f.stop.Error()
	}
	s.Stream, s.Revision, s.Position = f.record.Stream, int64(f.record.Revision), int64(f.record.Position)
	return s
}

// sieve keeps the facts of stopped accounts out of the rows, in one transaction.
type sieve struct {
	stopped  map[string]table.AccountStatus // by owner
	repaired map[string]bool                // owners of streams that are folded without some of their events
	changed  map[string]table.AccountStatus // what is to be written
	erased   map[string]eventstore.Position // stopped accounts whose erasure is passed over, and where it stands
	news     []table.AccountStatus          // what is to be said once the transaction is committed
	kept     []fact
}

// sift gives the facts that are to be folded, and writes what became of accounts.
func sift(ctx context.Context, tx *table.Tx, facts []fact) (*sieve, error) {
	rows, err := table.Select(ctx, tx, table.AccountStatuses, "where kind <> '' or voided > 0")
	if err != nil {
		return nil, err
	}
	v := &sieve{stopped: map[string]table.AccountStatus{}, repaired: map[string]bool{}, changed: map[string]table.AccountStatus{},
		erased: map[string]eventstore.Position{}}
	for _, s := range rows {
		if v.repaired[s.Account] = s.Voided > 0; s.Stopped() {
			v.stopped[s.Account] = s
		}
	}
	if err := v.load(ctx, tx, facts); err != nil {
		return nil, err
	}
	for _, f := range facts {
		v.take(f)
	}
	changed := make([]table.AccountStatus, 0, len(v.changed))
	for _, s := range v.changed {
		changed = append(changed, s)
	}
	return v, table.Upsert(ctx, tx, table.AccountStatuses, changed)
}

// load reads what is noted of accounts that run and of which something is to be noted now.
func (v *sieve) load(ctx context.Context, tx *table.Tx, facts []fact) error {
	seen := map[string]bool{}
	var owners []string
	for _, f := range facts {
		owner := table.OwnerOf(f.record.Stream)
		if _, stopped := v.stopped[owner]; f.notable() && !stopped && !seen[owner] {
			seen[owner], owners = true, append(owners, owner)
		}
	}
	rows, err := table.Load(ctx, tx, table.AccountStatuses, owners)
	for _, s := range rows {
		v.changed[s.Account] = s
	}
	return err
}

// notable says whether the fact changes its account's status.
func (f fact) notable() bool { return f.stop != nil || f.empty || f.corrects() }

// corrects says whether the event says that another one is to be passed over.
func (f fact) corrects() bool {
	_, ok := f.event.(event.Correction)
	return ok
}

func (v *sieve) take(f fact) {
	owner := table.OwnerOf(f.record.Stream)
	s, stopped := v.stopped[owner]
	if !stopped {
		if s = v.changed[owner]; !f.notable() {
			v.kept = append(v.kept, f)
			return
		}
	}
	s.Account, s.Passed = owner, int64(f.record.Position)
	if _, erased := f.event.(event.AccountErased); erased && s.Kind != table.AccountRefolds { // a refold comes to it, or leaves no rows
		v.erased[owner] = f.record.Position
	}
	switch {
	case f.corrects():
		s.Kind, s.Reason = table.AccountRefolds, "its rows are being written again"
		s.Stream, s.Revision, s.Position = f.record.Stream, int64(f.record.Revision), int64(f.record.Position)
	case !stopped && f.empty:
		if s.Empty == 0 {
			s.Empty = int64(f.record.Position)
		}
		v.news = append(v.news, table.AccountStatus{Account: owner, Empty: int64(f.record.Position)})
	case !stopped:
		s = f.status(s)
		v.news = append(v.news, s)
	}
	if v.changed[owner] = s; s.Stopped() {
		v.stopped[owner] = s
	}
}

// drop takes away the rows of stopped accounts that were erased: what is personal in them must not wait for a repair.
func (v *sieve) drop(m Model, b *Batch) {
	if !m.Personal {
		return
	}
	for owner, at := range v.erased {
		m.Drop(b, owner, at)
	}
}

// refolds says whether an account's rows are to be written again now.
func (v *sieve) refolds() bool {
	for _, s := range v.changed {
		if s.Kind == table.AccountRefolds {
			return true
		}
	}
	return false
}

// tell says what became of accounts, each once however many copies come across it.
func (l *lane) tell(news []table.AccountStatus) {
	for _, s := range news {
		switch {
		case !l.said.first(s.Account, max(s.Position, s.Empty)):
		case s.Stopped():
			l.log.Error("account stopped", "account", s.Account, "kind", s.Kind, "position", s.Position, "reason", s.Reason)
		default:
			l.log.Warn("a commit without a sync id changed nothing and is passed over", "account", s.Account, "position", s.Empty)
		}
	}
}

// said is what was said of accounts already.
type said struct {
	mu  sync.Mutex
	all map[incident]bool
}

// incident is one event of an account that cannot be used.
type incident struct {
	account  string
	position int64
}

// first says whether an incident was not said before.
func (s *said) first(account string, position int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[incident]bool{}
	}
	seen := s.all[incident{account, position}]
	s.all[incident{account, position}] = true
	return !seen
}
