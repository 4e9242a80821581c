package chaos

import (
	"fmt"
	"slices"
)

// referential is what one referential may hold, by what was acknowledged. One client writes to it, one request at a time.
type referential struct {
	account *account
	code    string
	rows    int // ids of sites there may be

	edition  int
	possible []state // never empty; more than one where a write is in doubt
	doubts   []write // that were not acknowledged, and may have happened
	pending  *write  // the last of these, while the client may send it again
	before   []state // that were possible before pending was sent for the first time
	last     *kept   // the last sync with an Idempotency-Key
	broken   bool    // a violation was told; what follows from it is no news
}

// kept is a request that must be answered the same again.
type kept struct {
	write write
	said  outcome
}

func newReferential(a *account, code string, rows int) *referential {
	return &referential{account: a, code: code, rows: rows, possible: []state{{}}}
}

// doubt notes that a write was sent and not acknowledged: it may have happened, may happen still, or never.
func (r *referential) doubt(w write) {
	if r.pending == nil || !same(*r.pending, w) {
		r.pending, r.before = &w, r.possible
		r.doubts = append(r.doubts, w)
	}
	r.possible = spread(r.possible, []write{w}, r.account.limits)
}

// same says whether a write is another one sent again. Editions are never used twice, so equal rows are the same request.
func same(a, b write) bool {
	return a.action == b.action && a.key == b.key && a.confirmed == b.confirmed && slices.Equal(a.rows, b.rows)
}

// spread is the states that may come of others when each of the writes happens or does not.
func spread(from []state, writes []write, l limits) []state {
	all := slices.Clone(from)
	for _, w := range writes {
		for _, s := range slices.Clone(all) {
			next, _ := w.apply(s, l)
			all = appendNew(all, next)
		}
	}
	return all
}

// appendNew keeps each state once.
func appendNew(all []state, s state) []state {
	if slices.ContainsFunc(all, func(other state) bool { return other.sum == s.sum && len(other.sites) == len(s.sites) }) {
		return all
	}
	return append(all, s)
}

// acknowledge notes what a write was answered with: only states that give this answer remain possible. The error says
// that none does. What is in doubt may happen until a later write is appended: then its own append, decided on an older
// revision, conflicts. A later write that changed nothing does not prevent it.
func (r *referential) acknowledge(w write, said outcome) error {
	from := r.possible
	again := r.pending != nil && same(*r.pending, w)
	if again && w.key != "" {
		from = r.before // answered as the first time, whichever that was
	}
	var next []state
	var wanted []outcome
	changes := false
	for _, s := range from {
		after, o := w.apply(s, r.account.limits)
		if wanted = append(wanted, o.seen(w)); o.seen(w) == said {
			next = appendNew(next, after)
			changes = changes || o.changes(w)
		}
	}
	if len(next) == 0 {
		return fmt.Errorf("%s of %d rows to %s/%s is answered %+v; what was acknowledged before gives %+v",
			w.action, len(w.rows), r.account.id, r.code, said, wanted)
	}
	if changes {
		r.doubts = nil // decided on an older revision, they can no longer be appended
	}
	r.possible, r.pending, r.before = spread(next, r.doubts, r.account.limits), nil, nil
	if w.key != "" && said.Status < 300 {
		r.last = &kept{w, said}
	}
	return nil
}

// repeat notes the answer to the last sync with an Idempotency-Key, sent again.
func (r *referential) repeat(said outcome) error {
	if said != r.last.said {
		return fmt.Errorf("a sync of %s/%s sent again with its Idempotency-Key is answered %+v, at first it was %+v", r.account.id, r.code, said, r.last.said)
	}
	return nil
}

// find notes what was read while nothing was on its way: that is what the referential holds. The error says that it is
// none of the states it may be in.
func (r *referential) find(got state) error {
	fewest, first := -1, ""
	for _, s := range r.possible {
		n, diff := differences(s, got)
		if n == 0 {
			r.possible, r.doubts, r.pending, r.before = []state{s}, nil, nil, nil
			return nil
		}
		if fewest < 0 || n < fewest {
			fewest, first = n, diff
		}
	}
	return fmt.Errorf("%s/%s holds none of the %d states it may be in (%d writes in doubt): %d sites differ from the nearest, such as %s",
		r.account.id, r.code, len(r.possible), len(r.doubts), fewest, first)
}
