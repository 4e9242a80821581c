package locations

import (
	"context"
	"fmt"
	"slices"

	"lieudit/schemas/locations"
)

// RowFault is a member of a row's content that breaks a rule.
type RowFault struct {
	Row
	locations.Fault
}

// ContentError: members of a batch break rules. Nothing was written.
type ContentError struct{ Faults []RowFault } // in the order of the external ids

func (e *ContentError) Error() string {
	return fmt.Sprintf("%d invalid members, the first of site %s: %s", len(e.Faults), e.Faults[0].ExternalID, e.Faults[0].Rule)
}

// checkContents fails with a *ContentError if a content that the last classification chose breaks a rule. A value that the
// site already has is not a fault: newer rules must not keep a site from being written. Unchanged contents are not checked, so
// a large batch of unchanged sites costs nothing.
func (l *Locations) checkContents(ctx context.Context, j *writeJob) error {
	faults := make([][]locations.Fault, len(j.rows))
	runInParallel(len(j.rows), func(i int) error {
		if w := j.rows[i]; w.chosen != nil && !w.isGeocodeRetry {
			faults[i] = w.Content.FindFaults()
		}
		return nil
	})
	var found []RowFault
	r := contentReader{locations: l, account: j.account}
	for i, w := range j.rows {
		if len(faults[i]) > 0 && w.current.version > 0 {
			stored, err := r.read(ctx, w.current.contentAt)
			if err != nil {
				return err
			}
			faults[i] = slices.DeleteFunc(faults[i], func(f locations.Fault) bool { return w.Content.HasSameMember(f.Member, stored.Content) })
		}
		for _, f := range faults[i] {
			found = append(found, RowFault{w.Row, f})
		}
	}
	if len(found) > 0 {
		return &ContentError{found}
	}
	return nil
}
