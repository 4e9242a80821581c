package chaos

import (
	"fmt"
	"slices"
)

// referential is the set of states that one referential of the service may be in, by the answers so far. One client
// writes to it, one request at a time.
type referential struct {
	account *account
	code    string
	rows    int // its sites have ids below this

	edition               int        // of the last write that was drawn
	possible              []state    // never empty; more than one where a write is in doubt
	inDoubt               []write    // writes that were not acknowledged and may have happened or still happen, in order
	pending               *write     // the last write in doubt, which the client may send again
	possibleBeforePending []state    // states that were possible before pending was first sent
	lastKeyedSync         *keyedSync // the last sync with an Idempotency-Key
	excluded              bool       // a violation was reported: it is neither written nor checked any more
}

// keyedSync is a sync with an Idempotency-Key and its answer, which the service must repeat if the sync is sent again.
type keyedSync struct {
	write   write
	outcome outcome
}

// newReferential returns the referential of a code without sites, as it is when the service has created it.
func newReferential(a *account, code string, rows int) *referential {
	return &referential{account: a, code: code, rows: rows, possible: []state{{}}}
}

// recordDoubt records that a write was sent and not acknowledged: it may have happened, may still happen, or never.
func (f *referential) recordDoubt(w write) {
	if f.pending == nil || !isSameRequest(*f.pending, w) {
		f.pending, f.possibleBeforePending = &w, f.possible
		f.inDoubt = append(f.inDoubt, w)
	}
	f.possible = expandStates(f.possible, []write{w}, f.account.limits)
}

// isSameRequest reports whether two writes are the same request, sent twice. Different requests never have equal rows,
// because each has an edition of its own.
func isSameRequest(a, b write) bool {
	return a.action == b.action && a.key == b.key && a.confirmed == b.confirmed && slices.Equal(a.rows, b.rows)
}

// expandStates returns all states that follow from the states in from, if each of the writes happens or not, in order.
func expandStates(from []state, writes []write, l limits) []state {
	all := slices.Clone(from)
	for _, w := range writes {
		for _, s := range slices.Clone(all) {
			next, _ := w.apply(s, l)
			all = appendDistinct(all, next)
		}
	}
	return all
}

// appendDistinct appends a state unless an equal one is there.
func appendDistinct(all []state, s state) []state {
	if slices.ContainsFunc(all, func(other state) bool { return other.sum == s.sum && len(other.sites) == len(s.sites) }) {
		return all
	}
	return append(all, s)
}

// acknowledge records the answer to a write: only the states from which the model gives this answer remain possible. The
// error says that no state does. A write in doubt may still happen until a later write is appended to the log: from then
// on its append conflicts, because it expects an older revision. A later write that changes nothing appends nothing.
func (f *referential) acknowledge(w write, answered outcome) error {
	from := f.possible
	again := f.pending != nil && isSameRequest(*f.pending, w)
	if again && w.key != "" {
		from = f.possibleBeforePending // the service answers as it did the first time
	}
	// Keep the states from which the model gives the same answer, as they are after the write.
	var next []state
	var wanted []outcome
	changes := false
	for _, s := range from {
		after, o := w.apply(s, f.account.limits)
		if wanted = append(wanted, o.visible(w)); o.visible(w) == answered {
			next = appendDistinct(next, after)
			changes = changes || o.appends(w)
		}
	}
	// The errors list what each possible state would have answered.
	if len(next) == 0 {
		return fmt.Errorf("%s of %d rows to %s/%s is answered %+v; what was acknowledged before gives %+v",
			w.action, len(w.rows), f.account.id, f.code, answered, wanted)
	}
	if changes {
		f.inDoubt = nil // decided on an older revision, they can no longer be appended
	}
	f.possible, f.pending, f.possibleBeforePending = expandStates(next, f.inDoubt, f.account.limits), nil, nil
	if w.key != "" && answered.Status < 300 {
		f.lastKeyedSync = &keyedSync{w, answered}
	}
	return nil
}

// checkRepeat compares the answer to a repeated sync with an Idempotency-Key with the first answer.
func (f *referential) checkRepeat(answered outcome) error {
	if answered != f.lastKeyedSync.outcome {
		return fmt.Errorf("a sync of %s/%s sent again with its Idempotency-Key is answered %+v, at first it was %+v", f.account.id, f.code, answered, f.lastKeyedSync.outcome)
	}
	return nil
}

// matchState finds the state that was read among the possible ones; it is then the only one. It must be read while no
// write is running. The error says that it is none of them.
func (f *referential) matchState(got state) error {
	fewest, first := -1, ""
	for _, s := range f.possible {
		n, diff := differences(s, got)
		if n == 0 {
			f.possible, f.inDoubt, f.pending, f.possibleBeforePending = []state{s}, nil, nil, nil
			return nil
		}
		if fewest < 0 || n < fewest {
			fewest, first = n, diff
		}
	}
	return fmt.Errorf("%s/%s holds none of the %d states it may be in (%d writes in doubt): %d sites differ from the nearest, such as %s",
		f.account.id, f.code, len(f.possible), len(f.inDoubt), fewest, first)
}
