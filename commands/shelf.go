package commands

import (
	"container/list"
	"sync"

	"lieudit/eventstore"
)

// shelf keeps the folds that were used last, by what they weigh together. One that makes room while a command is at work
// on it is as any other instance's then: what it decides is held to its revision.
type shelf[S any] struct {
	category string
	room     int

	mu     sync.Mutex
	folds  map[string]*list.Element
	recent *list.List // of *fold[S], the last used first
	weight int
}

func newShelf[S any](category string, room int) shelf[S] {
	return shelf[S]{category: category, room: room, folds: map[string]*list.Element{}, recent: list.New()}
}

// take is the fold of a stream, an empty one when it is not kept.
func (s *shelf[S]) take(id string) *fold[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.folds[id]; ok {
		s.recent.MoveToFront(e)
		return e.Value.(*fold[S])
	}
	f := &fold[S]{id: id, stream: s.category + "-" + id, revision: eventstore.NoStream, busy: make(chan struct{}, 1)}
	s.folds[id] = s.recent.PushFront(f)
	s.put(f, 1)
	return f
}

// weigh notes what a fold has come to weigh.
func (s *shelf[S]) weigh(f *fold[S], weight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.folds[f.id]; ok && e.Value == any(f) && weight != f.weight {
		s.put(f, weight)
	}
}

func (s *shelf[S]) put(f *fold[S], weight int) {
	s.weight += weight - f.weight
	f.weight = weight
	for s.weight > s.room && s.recent.Len() > 1 {
		last := s.recent.Remove(s.recent.Back()).(*fold[S])
		delete(s.folds, last.id)
		s.weight -= last.weight
	}
}
