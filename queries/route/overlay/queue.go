package overlay

// Queue is a priority queue of states by their labels: a heap of four children a node, which the standard library's of two and
// an interface is half as fast as. An improved state is pushed again; the older item is passed over by whoever pops it. The zero
// Queue is empty.
type Queue struct{ items []queueItem }

type queueItem struct {
	label Label
	state uint32
}

// isBefore orders items by label, then by state, so that a search takes the same steps each time.
func (a *queueItem) isBefore(b *queueItem) bool {
	if a.label != b.label {
		return a.label.IsLess(b.label)
	}
	return a.state < b.state
}

// Reset empties the queue.
func (q *Queue) Reset() { q.items = q.items[:0] }

// Len is the number of items.
func (q *Queue) Len() int { return len(q.items) }

// First is the least label; false when the queue is empty.
func (q *Queue) First() (Label, bool) {
	if len(q.items) == 0 {
		return Label{}, false
	}
	return q.items[0].label, true
}

// Push adds a state.
func (q *Queue) Push(state uint32, label Label) {
	item := queueItem{label, state}
	q.items = append(q.items, item)
	i := len(q.items) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !item.isBefore(&q.items[parent]) {
			break
		}
		q.items[i] = q.items[parent]
		i = parent
	}
	q.items[i] = item
}

// Pop removes the state of the least label; false when the queue is empty.
func (q *Queue) Pop() (state uint32, label Label, ok bool) {
	if len(q.items) == 0 {
		return 0, Label{}, false
	}
	least := q.items[0]
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	if len(q.items) > 0 {
		q.sink(last)
	}
	return least.state, least.label, true
}

// sink puts an item in the place of the first and moves it down.
func (q *Queue) sink(item queueItem) {
	i := 0
	for {
		first := 4*i + 1
		if first >= len(q.items) {
			break
		}
		least := first
		for child := first + 1; child < min(first+4, len(q.items)); child++ {
			if q.items[child].isBefore(&q.items[least]) {
				least = child
			}
		}
		if !q.items[least].isBefore(&item) {
			break
		}
		q.items[i] = q.items[least]
		i = least
	}
	q.items[i] = item
}
