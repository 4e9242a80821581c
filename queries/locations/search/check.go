package search

import (
	"fmt"
	"slices"
	"strings"
)

// Validate says whether an engine can be asked q, else ErrQuestion with the reason. A cursor is read by Place.
func (q Query) Validate() error {
	switch {
	case q.Limit < 1:
		return fmt.Errorf("%w: a page of %d", ErrInvalidQuery, q.Limit)
	case !slices.Contains([]Status{"", Active, Inactive, All}, q.Status):
		return fmt.Errorf("%w: status %q", ErrInvalidQuery, q.Status)
	case !slices.Contains([]Sort{"", ByRelevance, ByDistance, ByName}, q.Sort):
		return fmt.Errorf("%w: sort %q", ErrInvalidQuery, q.Sort)
	case q.Center == nil && (q.Sort == ByDistance || q.Radius != 0):
		return fmt.Errorf("%w: a distance from no center", ErrInvalidQuery)
	case q.Center != nil && !q.Center.isValid(), q.Box != nil && !q.Box.isValid(), !(q.Radius >= 0):
		return fmt.Errorf("%w: no such place on Earth", ErrInvalidQuery)
	}
	return nil
}

// TrimmedText is the text, "" when it is blank.
func (q Query) TrimmedText() string { return strings.TrimSpace(q.Text) }

// EffectiveSort is the sort that holds when all is considered. ByRelevance means that there is a text.
func (q Query) EffectiveSort() Sort {
	switch {
	case q.Sort == ByName, q.Sort == ByDistance:
		return q.Sort
	case q.TrimmedText() != "":
		return ByRelevance
	case q.Center != nil:
		return ByDistance
	}
	return ByName
}
