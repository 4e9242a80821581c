package table

import (
	"errors"
	"fmt"
)

// ErrAstray: the copy holds what is not on the log, because an older copy of the log was restored. Nothing is answered
// from it.
var ErrAstray = errors.New("the read model holds what is not on the log")

// strays are what this instance knows of copies that are not of the log any more.
type strays struct {
	copies map[string]bool   // by name
	count  map[string]uint64 // by model, how often one was found to be
}

// SetAstray notes whether a copy holds what is not on the log: reads of one that does fail with ErrAstray at once.
func (s *Shelf) SetAstray(c Copy, astray bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strays.copies[c.Name] == astray {
		return
	}
	if s.strays.copies == nil {
		s.strays = strays{map[string]bool{}, map[string]uint64{}}
	}
	s.strays.copies[c.Name] = astray
	if astray {
		s.strays.count[c.Model]++
	}
}

// IsAstray says whether a copy holds what is not on the log.
func (s *Shelf) IsAstray(c Copy) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays.copies[c.Name]
}

// Strays counts how often a copy of a model was found to hold what is not on the log. What was read before the count
// changed is not to be shown after it.
func (s *Shelf) Strays(m Model) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays.count[m.Name]
}

func (s *Shelf) onLog(c Copy) error {
	if s.IsAstray(c) {
		return fmt.Errorf("%s: %w", c.Name, ErrAstray)
	}
	return nil
}
