package locations

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// change is what a command does to the sites of one referential.
type change struct {
	event.SitesWritten
	rows []event.SiteRow // contents in clear
}

// figures is a change of nothing, with how things stand.
func (s *State) figures(g *group, action string, limit plan.Plan) event.SitesWritten {
	return event.SitesWritten{
		Referential: g.code, Action: action, Before: g.active, After: g.active,
		Active: s.active, Capacity: limit.Sites, Ceiling: limit.Ceiling(),
	}
}

// add notes what becomes of a site. The row's content, if any, is the caller's.
func (c *change) add(account string, x standing, r event.SiteRow) {
	r.Site, r.Version = siteID(account, c.Referential, r.ExternalID), x.version+1
	c.rows = append(c.rows, r)
}

func (c *change) deactivate(account, externalID string, x standing) {
	c.add(account, x, event.SiteRow{ExternalID: externalID, Op: event.SiteDeactivated})
	c.Deactivated++
	c.After--
}

func (c *change) sort() {
	slices.SortFunc(c.rows, func(a, b event.SiteRow) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
}

// crowded is why the account cannot have as many sites as it would have then. What does not raise the count is never
// refused for it.
func crowded(w event.SitesWritten) error {
	if grows := w.After > w.Before; grows && w.Active+w.After-w.Before > w.Ceiling {
		return &SiteCapError{Active: w.Active, Capacity: w.Capacity, Ceiling: w.Ceiling}
	}
	return nil
}

// namespace is what the ids of sites are made in.
var namespace = uuid.MustParse("6f1d1c1e-52d5-5c0a-9a53-0d2f6c6b8a11")

// siteID is the id of a site: the same for ever, for a site is never deleted.
func siteID(account, code, externalID string) string {
	return uuid.NewSHA1(namespace, []byte(account+"/"+code+"/"+externalID)).String()
}
