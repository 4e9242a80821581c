package table

import (
	"errors"
	"fmt"
)

// ErrDiverged: the copy holds what is not on the log, because an older copy of the log was restored. Nothing is answered
// from it.
var ErrDiverged = errors.New("the read model holds what is not on the log")

// divergences are what this instance knows of copies that are not of the log any more.
type divergences struct {
	diverged map[string]bool   // by name
	counts   map[string]uint64 // by model, how often one was found to be
}

// SetDiverged notes whether a copy holds what is not on the log: reads of one that does fail with ErrAstray at once.
func (s *Registry) SetDiverged(c Generation, isDiverged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.divergences.diverged[c.Name] == isDiverged {
		return
	}
	if s.divergences.diverged == nil {
		s.divergences = divergences{map[string]bool{}, map[string]uint64{}}
	}
	s.divergences.diverged[c.Name] = isDiverged
	if isDiverged {
		s.divergences.counts[c.Model]++
	}
}

// IsDiverged says whether a copy holds what is not on the log.
func (s *Registry) IsDiverged(c Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.divergences.diverged[c.Name]
}

// CountDivergences counts how often a copy of a model was found to hold what is not on the log. What was read before the count
// changed is not to be shown after it.
func (s *Registry) CountDivergences(m ReadModel) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.divergences.counts[m.Name]
}

func (s *Registry) checkNotDiverged(c Generation) error {
	if s.IsDiverged(c) {
		return fmt.Errorf("%s: %w", c.Name, ErrDiverged)
	}
	return nil
}
