package commands

import (
	"fmt"
	"testing"
)

// kept are the ids of the folds that a shelf has.
func kept(s *shelf[int], of ...string) (ids string) {
	for _, id := range of {
		if _, ok := s.folds[id]; ok {
			ids += id
		}
	}
	return ids
}

func TestShelfMakesRoomWithWhatWasUsedLongestAgo(t *testing.T) {
	t.Parallel()
	s := newShelf[int]("c", 10)
	for _, id := range []string{"a", "b", "c"} {
		s.weigh(s.take(id), 3)
	}
	s.take("a")
	s.weigh(s.take("d"), 4)
	if got := kept(&s, "a", "b", "c", "d"); got != "acd" || s.weight != 10 {
		t.Errorf("got %s of weight %d, want acd of 10", got, s.weight)
	}
	s.weigh(s.take("c"), 1)
	if s.weight != 8 {
		t.Errorf("got weight %d once c was lighter, want 8", s.weight)
	}
}

func TestShelfKeepsOneThatWeighsMoreThanAll(t *testing.T) {
	t.Parallel()
	s := newShelf[int]("c", 10)
	s.take("a")
	f := s.take("b")
	s.weigh(f, 100)
	if got := kept(&s, "a", "b"); got != "b" || s.take("b") != f {
		t.Errorf("got %s, want b", got)
	}
	s.take("c")
	if got := kept(&s, "a", "b", "c"); got != "c" || s.weight != 1 {
		t.Errorf("got %s of weight %d, want c of 1", got, s.weight)
	}
	s.weigh(f, 200) // it is on nobody's shelf
	if s.weight != 1 {
		t.Errorf("got weight %d, want 1", s.weight)
	}
}

func TestShelfIsBoundedByNumberToo(t *testing.T) {
	t.Parallel()
	s := newShelf[int]("c", 10)
	for n := range 100 {
		s.take(fmt.Sprint(n))
	}
	if len(s.folds) != 10 || s.recent.Len() != 10 {
		t.Errorf("got %d folds, want 10", len(s.folds))
	}
}
