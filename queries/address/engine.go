package address

import (
	"lieudit/queries/address/vintage"
)

// Engine answers from one vintage. It is safe for concurrent use, until the vintage is closed.
type Engine struct {
	v *vintage.Vintage
}

// New makes an engine of a vintage.
func New(v *vintage.Vintage) *Engine { return &Engine{v: v} }
