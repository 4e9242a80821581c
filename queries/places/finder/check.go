package finder

import (
	"fmt"
	"slices"
	"strings"
)

// Check says whether an engine can be asked q, else ErrQuestion with the reason. A cursor is read by Place.
func (q Query) Check() error {
	switch {
	case q.Limit < 1:
		return fmt.Errorf("%w: a page of %d", ErrQuestion, q.Limit)
	case !slices.Contains([]Status{"", Active, Inactive, All}, q.Status):
		return fmt.Errorf("%w: status %q", ErrQuestion, q.Status)
	case !slices.Contains([]Sort{"", ByRelevance, ByDistance, ByName}, q.Sort):
		return fmt.Errorf("%w: sort %q", ErrQuestion, q.Sort)
	case q.Center == nil && (q.Sort == ByDistance || q.Radius != 0):
		return fmt.Errorf("%w: a distance from no center", ErrQuestion)
	case q.Center != nil && !q.Center.valid(), q.Box != nil && !q.Box.valid(), !(q.Radius >= 0):
		return fmt.Errorf("%w: no such place on Earth", ErrQuestion)
	}
	return nil
}

// Asked is the text, "" when it is blank.
func (q Query) Asked() string { return strings.TrimSpace(q.Text) }

// Order is the sort that holds when all is considered. ByRelevance means that there is a text.
func (q Query) Order() Sort {
	switch {
	case q.Sort == ByName, q.Sort == ByDistance:
		return q.Sort
	case q.Asked() != "":
		return ByRelevance
	case q.Center != nil:
		return ByDistance
	}
	return ByName
}
