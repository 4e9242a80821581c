// Package live holds the vintage from which the service answers. Swap replaces it at any time without stopping queries.
// A vintage is unmapped when its last reader is done, never before, because a read of an unmapped
// file ends the process.
//
//	releases.Watcher ── Swap, Withdraw ──► Vintage ── Acquire ──► Engine (one reader more)
//	                                          ▲                     │
//	http/api, geocode ── Query(func(*Engine)) ┘                     └── Release (one reader less; the last one unmaps)
//
// Queries go through Query. It runs them under vintage.Guard and withdraws a vintage that turns out to be damaged, so
// that no later query reads it. A mappedfile.Holder does the counting and the withdrawing; this package adds the engines and
// its own errors.
package live

import (
	"errors"
	"fmt"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
	"lieudit/queries/mappedfile"
)

// Vintage holds the served vintage, if any. It is safe for concurrent use.
type Vintage struct {
	// NewSource returns the source of candidates for a vintage. When it is nil, candidates come from the vintage's own
	// index. It is set before the first Swap.
	NewSource func(*vintage.Vintage) address.Source

	communes *commune.Table
	holder   mappedfile.Holder[Engine]
}

// ErrNone says that no vintage is served.
var ErrNone = errors.New("no vintage is served")

// WithdrawnError says that a vintage exists and why it is not served. It matches ErrNone.
type WithdrawnError struct{ Reason error }

func (e *WithdrawnError) Error() string { return fmt.Sprintf("%v: %v", ErrNone, e.Reason) }

func (e *WithdrawnError) Unwrap() []error { return []error{ErrNone, e.Reason} }

// newAbsenceError makes the error of a query when no vintage is served.
func newAbsenceError(reason error) error {
	if reason == nil {
		return ErrNone
	}
	return &WithdrawnError{reason}
}

// New returns a holder without a vintage.
func New(communes *commune.Table) *Vintage {
	return &Vintage{communes: communes, holder: mappedfile.Holder[Engine]{AbsenceError: newAbsenceError}}
}

// Engine is an address engine on one vintage that a reader holds. The reader calls Release once when it has stopped
// using it.
type Engine struct {
	*address.Engine
	// OwnIndex answers from the index within the vintage's file, whatever Engine's source is. It serves files of
	// thousands of addresses and callers that cannot wait for a server.
	OwnIndex *address.Engine
	Meta     vintage.Meta

	reading *mappedfile.Reading[Engine] // nil within Query, which ends the use itself
}

// Query runs a query on the served vintage. It fails with ErrNone if there is none, and with a *WithdrawnError if
// there is one that is not served. A vintage that proves to be damaged during the query is withdrawn, and the query
// fails with a *WithdrawnError.
func Query[T any](live *Vintage, query func(*Engine) (T, error)) (T, error) {
	return mappedfile.Query(&live.holder, func(e Engine) (T, error) { return query(&e) })
}

// Acquire returns an engine on the served vintage, or false if no vintage is served. The caller may read its metadata;
// queries go through Query.
func (a *Vintage) Acquire() (*Engine, bool) {
	r, ok := a.holder.Acquire()
	if !ok {
		return nil, false
	}
	e := r.Engine
	e.reading = r
	return &e, true
}

// Release ends one use of the engine. The last one unmaps the vintage.
func (e *Engine) Release() { e.reading.Release() }

// Withdraw stops serving. Queries fail with a *WithdrawnError for that reason until the next Swap.
func (a *Vintage) Withdraw(reason error) { a.holder.Withdraw(reason) }

// Swap serves v from now on and owns it: it is closed after a later Swap or Withdraw. With nil no vintage is served.
func (a *Vintage) Swap(v *vintage.Vintage) {
	if v == nil {
		a.holder.Withdraw(nil)
		return
	}
	onOwnIndex := address.New(v, a.communes)
	e := Engine{Engine: onOwnIndex, OwnIndex: onOwnIndex, Meta: v.Meta}
	if a.NewSource != nil {
		e.Engine = address.NewOn(v, a.communes, a.NewSource(v))
	}
	a.holder.Swap(v, e)
}
