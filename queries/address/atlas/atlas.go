// Package atlas holds the vintage that is served. It can be exchanged at any time: who asked before goes on with the old
// one, which is unmapped when its last reader is gone, never before.
package atlas

import (
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
}

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

// Use is the vintage served now; false: there is none yet.
func (a *Atlas) Use() (*Edition, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil {
		return nil, false
	}
	a.now.readers++
	return a.now, true
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
	a.now = next
	a.mu.Unlock()
	if last != nil {
		last.Done()
	}
}
