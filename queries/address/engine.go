package address

import (
	"sync"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// Engine answers from one vintage and the table of communes. It is safe for concurrent use, until the vintage is closed.
type Engine struct {
	v      *vintage.Vintage
	table  *commune.Table
	source Source // nil: the vintage's own index

	departments func() map[string][]uint32 // the communes of each
}

// New makes an engine of a vintage. What the table knows of communes is added to what the vintage does.
func New(v *vintage.Vintage, table *commune.Table) *Engine {
	table.PrepareSearch()
	return &Engine{v: v, table: table, departments: sync.OnceValue(func() map[string][]uint32 { return byDepartment(v) })}
}

// NewOn makes one whose candidates come from a source that knows the same vintage.
func NewOn(v *vintage.Vintage, table *commune.Table, source Source) *Engine {
	e := New(v, table)
	e.source = source
	return e
}

// Vintage is what the engine answers from.
func (e *Engine) Vintage() *vintage.Vintage { return e.v }
