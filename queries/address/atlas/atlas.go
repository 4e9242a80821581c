// Package atlas holds the vintage that is served. It can be exchanged at any time: who asked before goes on with the old
// one, which is unmapped when its last reader is gone, never before. Every question goes through Ask: a vintage that
// turns out to be damaged, under a question or otherwise, answers none any more.
package atlas

import (
	"errors"
	"fmt"
	"sync"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// Atlas holds one vintage or none. It is safe for concurrent use.
type Atlas struct {
	// Source is where the candidates of a vintage come from; nil: from its own index. It is set before the first swap.
	Source func(*vintage.Vintage) address.Source

	communes *commune.Table

	mu  sync.Mutex
	now *Edition
	why error // why none is served, nil where there never was one
}

// ErrNone: no vintage is served.
var ErrNone = errors.New("no vintage is served")

// WithdrawnError says that there is a vintage, and why it is not served.
type WithdrawnError struct{ Reason error }

func (e *WithdrawnError) Error() string { return fmt.Sprintf("%v: %v", ErrNone, e.Reason) }

func (e *WithdrawnError) Unwrap() []error { return []error{ErrNone, e.Reason} }

// New is an empty atlas.
func New(communes *commune.Table) *Atlas { return &Atlas{communes: communes} }

// Edition is a vintage in use. Done must be called once when nothing of it is used any more.
type Edition struct {
	*address.Engine
	// Own is the same on the vintage's own index, for what is asked in thousands or must not wait.
	Own  *address.Engine
	Meta vintage.Meta

	atlas   *Atlas
	vintage *vintage.Vintage
	readers int // of them the atlas is one, while it is served
}

// Ask asks the vintage served now. Where there is none the error is ErrNone, a *WithdrawnError where there is one that
// must not be asked; a vintage that proves damaged under the question is withdrawn with it.
func Ask[T any](a *Atlas, f func(*Edition) (T, error)) (answer T, err error) {
	e, ok := a.Use()
	if !ok {
		return answer, a.absence()
	}
	defer e.Done()
	err = e.vintage.Guard(func() (err error) {
		answer, err = f(e)
		return err
	})
	if damage := e.vintage.Damage(); damage != nil {
		var none T
		a.withdraw(e, damage)
		return none, &WithdrawnError{damage}
	}
	return answer, err
}

// Use is the vintage served now; false: there is none. What it says of itself can be read; questions go through Ask.
func (a *Atlas) Use() (*Edition, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil || a.now.vintage.Damage() != nil {
		return nil, false
	}
	a.now.readers++
	return a.now, true
}

func (a *Atlas) absence() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.now != nil && a.now.vintage.Damage() != nil:
		return &WithdrawnError{a.now.vintage.Damage()}
	case a.why != nil:
		return &WithdrawnError{a.why}
	}
	return ErrNone
}

// Withdraw serves nothing from now on, and says why.
func (a *Atlas) Withdraw(why error) { a.withdraw(nil, why) }

// withdraw takes an edition, or whichever is served, out of service. One that was replaced meanwhile is of no interest.
func (a *Atlas) withdraw(e *Edition, why error) {
	a.mu.Lock()
	last := a.now
	if e != nil && last != e {
		a.mu.Unlock()
		return
	}
	a.now, a.why = nil, why
	a.mu.Unlock()
	if last != nil {
		last.Done()
	}
}

// Done gives a vintage back.
func (e *Edition) Done() {
	e.atlas.mu.Lock()
	e.readers--
	last := e.readers == 0
	e.atlas.mu.Unlock()
	if last {
		e.vintage.Close() // an unmapping that fails leaves nothing to do
	}
}

// Swap serves another vintage from now on; the atlas closes it when it is swapped in turn. Nil serves none.
func (a *Atlas) Swap(v *vintage.Vintage) {
	var next *Edition
	if v != nil {
		own := address.New(v, a.communes)
		next = &Edition{Engine: own, Own: own, Meta: v.Meta, atlas: a, vintage: v, readers: 1}
		if a.Source != nil {
			next.Engine = address.NewOn(v, a.communes, a.Source(v))
		}
	}
	a.mu.Lock()
	last := a.now
	a.now, a.why = next, nil
	a.mu.Unlock()
	if last != nil {
		last.Done()
	}
}
