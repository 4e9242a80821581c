package locations

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// siteChanges is what a command does to the sites of one referential.
type siteChanges struct {
	event.SiteWriteSummary
	rows []event.SiteRow // contents in clear
}

// newWriteSummary is a change of nothing, with how things stand.
func (s *State) newWriteSummary(ref *referentialState, action string, limit plan.Plan) event.SiteWriteSummary {
	return event.SiteWriteSummary{
		Referential: ref.code, Action: action, ActiveBefore: ref.active, ActiveAfter: ref.active,
		AccountActive: s.activeSites, Capacity: limit.SiteCapacity, Ceiling: limit.SiteCeiling(),
	}
}

// addRow notes what becomes of a site. The row's content, if any, is the caller's.
func (c *siteChanges) addRow(account string, state siteState, r event.SiteRow) {
	r.SiteID, r.Version = siteID(account, c.Referential, r.ExternalID), state.version+1
	c.rows = append(c.rows, r)
}

func (c *siteChanges) deactivateSite(account, externalID string, state siteState) {
	c.addRow(account, state, event.SiteRow{ExternalID: externalID, Operation: event.SiteDeactivated})
	c.Deactivated++
	c.ActiveAfter--
}

func (c *siteChanges) sortRows() {
	slices.SortFunc(c.rows, func(a, b event.SiteRow) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
}

// checkSiteCap is why the account cannot have as many sites as it would have then. What does not raise the count is never
// refused for it.
func checkSiteCap(w event.SiteWriteSummary) error {
	if grows := w.ActiveAfter > w.ActiveBefore; grows && w.AccountActive+w.ActiveAfter-w.ActiveBefore > w.Ceiling {
		return refusal.SitesOverCapacity.With(refusal.Details{Active: w.AccountActive, Capacity: w.Capacity, Ceiling: w.Ceiling})
	}
	return nil
}

// siteIDNamespace is what the ids of sites are made in.
var siteIDNamespace = uuid.MustParse("6f1d1c1e-52d5-5c0a-9a53-0d2f6c6b8a11")

// siteID is the id of a site: the same for ever, for a site is never deleted.
func siteID(account, code, externalID string) string {
	return uuid.NewSHA1(siteIDNamespace, []byte(account+"/"+code+"/"+externalID)).String()
}
