package overlay

// Metric holds the costs of crossing each cell, for one profile. Its columns are read-only and may lie in a mapped file. It is safe
// for concurrent use.
type Metric struct {
	// First is where the matrix of each cell begins in Weights, or in those of Base if the word IsShared of the cell is 1.
	First     []uint32
	IsShared  []uint32
	Weights   []uint64 // keys: rows of entries, columns of exits; NoPath where no path leads within the cell
	Penalties []uint32 // the penalty of each weight; empty if no weight of the profile has one

	// Base is the metric of the same mode and optimization that avoids nothing; nil for that one itself. It is not a column: code
	// that reads a Metric from a file must set it.
	Base *Metric
}

// Matrix returns the matrix of a cell, row by row: a row for each entry, a column for each exit. penalties is nil
// if no path of the cell has one. The caller must not change either.
func (m *Metric) Matrix(t *Topology, cell uint32) (keys []uint64, penalties []uint32) {
	first, size := m.First[cell], t.FirstWeight[cell+1]-t.FirstWeight[cell]
	if m.IsShared[cell] != 0 {
		return m.Base.cut(first, size)
	}
	return m.cut(first, size)
}

// cut returns the matrix at a position in the columns.
func (m *Metric) cut(first, size uint32) (keys []uint64, penalties []uint32) {
	if len(m.Penalties) > 0 {
		penalties = m.Penalties[first : first+size]
	}
	return m.Weights[first : first+size], penalties
}
