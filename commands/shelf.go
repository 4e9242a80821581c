package commands

import (
	"container/list"
	"sync"

	"lieudit/eventstore"
)

// stateCache keeps the folds that were used last, by what they weigh together. One that makes room while a command is at work
// on it is as any other instance's then: what it decides is held to its revision.
type stateCache[S any] struct {
	category  string
	maxWeight int

	mu          sync.Mutex
	states      map[string]*list.Element
	recent      *list.List // of *fold[S], the last used first
	totalWeight int
}

func newStateCache[S any](category string, maxWeight int) stateCache[S] {
	return stateCache[S]{category: category, maxWeight: maxWeight, states: map[string]*list.Element{}, recent: list.New()}
}

// findOrCreate is the fold of a stream, an empty one when it is not kept.
func (c *stateCache[S]) findOrCreate(id string) *streamState[S] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.states[id]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*streamState[S])
	}
	s := &streamState[S]{id: id, stream: c.category + "-" + id, revision: eventstore.NoStream, semaphore: make(chan struct{}, 1)}
	c.states[id] = c.recent.PushFront(s)
	c.setWeight(s, 1)
	return s
}

// updateWeight notes what a fold has come to updateWeight.
func (c *stateCache[S]) updateWeight(s *streamState[S], weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.states[s.id]; ok && e.Value == any(s) && weight != s.weight {
		c.setWeight(s, weight)
	}
}

func (c *stateCache[S]) setWeight(s *streamState[S], weight int) {
	c.totalWeight += weight - s.weight
	s.weight = weight
	for c.totalWeight > c.maxWeight && c.recent.Len() > 1 {
		last := c.recent.Remove(c.recent.Back()).(*streamState[S])
		delete(c.states, last.id)
		c.totalWeight -= last.weight
	}
}
