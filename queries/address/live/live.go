// Package live holds the vintage that the service answers from. Swap replaces it at any time without stopping queries.
// Its one constraint: a vintage is unmapped when its last reader is done, never before, because a read of an unmapped
// file ends the process.
//
//	releases.Watcher ── Swap, Withdraw ──► Vintage ── Acquire ──► Engine (one reader more)
//	                                          ▲                     │
//	http/api, geocode ── Query(func(*Engine)) ┘                     └── Release (one reader less; the last one unmaps)
//
// Queries go through Query. It runs them under vintage.Guard and withdraws a vintage that turns out to be damaged, so
// that no later query reads it.
package live

import (
	"errors"
	"fmt"
	"sync"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// Vintage holds the served vintage, or none. It is safe for concurrent use.
type Vintage struct {
	// NewSource returns the source of candidates for a vintage. When it is nil, candidates come from the vintage's own
	// index. It is set before the first Swap.
	NewSource func(*vintage.Vintage) address.Source

	communes *commune.Table

	mu               sync.Mutex
	current          *Engine
	withdrawnBecause error // why no vintage is served; nil when none was ever served
}

// ErrNone says that no vintage is served.
var ErrNone = errors.New("no vintage is served")

// WithdrawnError says that a vintage exists and why it is not served. It matches ErrNone.
type WithdrawnError struct{ Reason error }

func (e *WithdrawnError) Error() string { return fmt.Sprintf("%v: %v", ErrNone, e.Reason) }

func (e *WithdrawnError) Unwrap() []error { return []error{ErrNone, e.Reason} }

// New returns a holder without a vintage.
func New(communes *commune.Table) *Vintage { return &Vintage{communes: communes} }

// Engine is an address engine on one vintage that a reader holds. The reader calls Release once when it has stopped
// using it.
type Engine struct {
	*address.Engine
	// OwnIndex answers from the index within the vintage's file, whatever Engine's source is. It serves files of
	// thousands of addresses and callers that cannot wait for a server.
	OwnIndex *address.Engine
	Meta     vintage.Meta

	owner   *Vintage
	vintage *vintage.Vintage
	readers int // the holder counts as one while it serves the engine
}

// Query runs a query on the served vintage. It fails with ErrNone when there is none, and with a *WithdrawnError when
// there is one that is not served. A vintage that proves to be damaged during the query is withdrawn, and the query
// fails with a *WithdrawnError.
func Query[T any](live *Vintage, query func(*Engine) (T, error)) (result T, err error) {
	e, ok := live.Acquire()
	if !ok {
		return result, live.absenceError()
	}
	defer e.Release()
	err = e.vintage.Guard(func() (err error) {
		result, err = query(e)
		return err
	})
	if damage := e.vintage.Damage(); damage != nil {
		var zero T
		live.withdrawEngine(e, damage)
		return zero, &WithdrawnError{damage}
	}
	return result, err
}

// Acquire returns an engine on the served vintage; false says that there is none. The caller may read its metadata;
// queries go through Query.
func (a *Vintage) Acquire() (*Engine, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.vintage.Damage() != nil {
		return nil, false
	}
	a.current.readers++
	return a.current, true
}

// absenceError says why no vintage is served.
func (a *Vintage) absenceError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.current != nil && a.current.vintage.Damage() != nil:
		return &WithdrawnError{a.current.vintage.Damage()}
	case a.withdrawnBecause != nil:
		return &WithdrawnError{a.withdrawnBecause}
	}
	return ErrNone
}

// Withdraw stops serving. Queries fail with a *WithdrawnError for that reason until the next Swap.
func (a *Vintage) Withdraw(reason error) { a.withdrawEngine(nil, reason) }

// withdrawEngine stops serving an engine, or whichever is served when e is nil. It ignores an engine that was replaced
// meanwhile.
func (a *Vintage) withdrawEngine(e *Engine, reason error) {
	a.mu.Lock()
	withdrawn := a.current
	if e != nil && withdrawn != e {
		a.mu.Unlock()
		return
	}
	a.current, a.withdrawnBecause = nil, reason
	a.mu.Unlock()
	if withdrawn != nil {
		withdrawn.Release()
	}
}

// Release ends one use of the engine. The last one unmaps the vintage.
func (e *Engine) Release() {
	e.owner.mu.Lock()
	e.readers--
	isLast := e.readers == 0
	e.owner.mu.Unlock()
	if isLast {
		e.vintage.Close() // a failure to unmap leaves nothing to do
	}
}

// Swap serves v from now on and owns it: it is closed after a later Swap or Withdraw. Nil serves none.
func (a *Vintage) Swap(v *vintage.Vintage) {
	var next *Engine
	if v != nil {
		onOwnIndex := address.New(v, a.communes)
		next = &Engine{Engine: onOwnIndex, OwnIndex: onOwnIndex, Meta: v.Meta, owner: a, vintage: v, readers: 1}
		if a.NewSource != nil {
			next.Engine = address.NewOn(v, a.communes, a.NewSource(v))
		}
	}
	a.mu.Lock()
	replaced := a.current
	a.current, a.withdrawnBecause = next, nil
	a.mu.Unlock()
	if replaced != nil {
		replaced.Release()
	}
}
