package overlay

// Heap is the priority queue of a search: a heap with four children for each item. It has no decrease-key: a state is pushed again
// with each better weight, and the caller drops a popped item whose weight is not the label of its state. The order of equal
// weights is unspecified but always the same. container/heap would allocate for each item and call through an interface.
type Heap []Item

// Item is a state with the weight of a path to it, in 16 bytes. The search decides what a state is: an edge or a label.
type Item struct {
	Key     uint64
	Penalty uint32
	State   uint32
}

func (i *Item) isBefore(other *Item) bool {
	return i.Key < other.Key || i.Key == other.Key && i.Penalty < other.Penalty
}

// Weight is the weight of the item.
func (i *Item) Weight() Weight { return Weight{i.Key, i.Penalty} }

// Push adds an item.
func (h *Heap) Push(item Item) {
	*h = append(*h, item)
	items := *h
	i := len(items) - 1
	for i > 0 {
		parent := (i - 1) >> 2
		if !item.isBefore(&items[parent]) {
			break
		}
		items[i] = items[parent]
		i = parent
	}
	items[i] = item
}

// Pop takes out the least item. The heap must not be empty.
func (h *Heap) Pop() Item {
	items := *h
	least, last := items[0], items[len(items)-1]
	items = items[:len(items)-1]
	*h = items
	if len(items) > 0 {
		items.sink(last)
	}
	return least
}

// sink puts an item in the place of the first and moves it down.
func (h Heap) sink(item Item) {
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].isBefore(&h[least]) {
				least = c
			}
		}
		if !h[least].isBefore(&item) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = item
}
