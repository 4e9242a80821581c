package shape

import "encoding/json"

// Nullable is a field that may be left out, be null, or hold a T, where the three mean different things.
type Nullable[T any] struct {
	IsGiven bool // the field was there
	Value   *T   // nil when it was null
}

// IsZero says that the field was left out (for omitzero).
func (n Nullable[T]) IsZero() bool { return !n.IsGiven }

// MarshalJSON writes the value, or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a value or null; it is not called for a field that is left out.
func (n *Nullable[T]) UnmarshalJSON(data []byte) error {
	n.IsGiven, n.Value = true, nil
	return json.Unmarshal(data, &n.Value)
}

// nullable is what every Nullable is.
type nullable interface{ isNullable() }

func (n Nullable[T]) isNullable() {}
