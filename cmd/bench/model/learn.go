package model

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Secret is a key as its customer knows it.
type Secret struct {
	Label, ID, Token, Kind string
	IsActive               bool // as far as is known
}

// learnKey keeps the secret of a newly issued key.
func (m *Model) learnKey(c *Call, a Answer) {
	issue, ok := c.OnAccount.(IssueKey)
	if !ok || a.Status != 201 {
		return
	}
	k := shownKey{}
	if json.Unmarshal(a.Body, &k) == nil {
		of := m.customer(c.Account)
		of.secrets = append(of.secrets, Secret{Label: issue.Label, ID: k.ID, Token: k.Token, Kind: k.Kind})
	}
}

// checkSite checks that a site in an answer has its id and is complete.
func (m *Model) checkSite(c *Call, a Answer) {
	s := shownSite{}
	if a.Status/100 != 2 || json.Unmarshal(a.Body, &s) != nil || s.ExternalID == "" {
		return
	}
	m.checkShown(c.Account, c.Act, c.Text, s)
}

// checkShown checks a site wherever it is shown.
func (m *Model) checkShown(account string, act, where string, s shownSite) {
	of, id := m.customer(account), siteID{s.Referential, s.ExternalID}
	if known, ok := of.ids[id]; ok && known != s.ID {
		m.report(StableIDs, act, "%s: site %v has id %s, it had %s", where, id, s.ID, known)
	}
	of.ids[id] = s.ID
	if s.IsActive != (s.Deactivated == "") {
		m.report(WholeContents, act, "%s: site %v is active: %v, deactivated at %q", where, id, s.IsActive, s.Deactivated)
	}
	if s.Properties["nom"] != s.Name {
		m.report(WholeContents, act, "%s: site %v is %q with the properties of %q", where, id, s.Name, s.Properties["nom"])
	}
	m.checkPlace(act, where, s)
}

// Place formats a position as customers write it into a site's properties, next to the site's own position or its address.
func Place(lat, lon float64) string { return fmt.Sprintf("%.6f %.6f", lat, lon) }

// placeTolerance is how far, in degrees, a shown position may be from the written one: some metres.
const placeTolerance = 5e-5

// checkPlace checks the position of a shown site. A site without a position of its own is always found by its address, or never.
func (m *Model) checkPlace(act, where string, s shownSite) {
	var lat, lon float64
	if _, err := fmt.Sscanf(s.Properties["lieu"], "%f %f", &lat, &lon); err != nil {
		return // not a site of these customers
	}
	isPlaced := s.Lat != nil && s.Lon != nil
	isRight := isPlaced && math.Abs(*s.Lat-lat) < placeTolerance && math.Abs(*s.Lon-lon) < placeTolerance
	if s.Address != nil {
		before, isKnown := m.isFound[*s.Address]
		m.isFound[*s.Address] = isPlaced
		isRight = (isRight || !isPlaced) && (!isKnown || before == isPlaced)
	}
	if !isRight {
		text, _ := json.Marshal(s)
		m.report(PlacedAtAddress, act, "%s: want %s: %s", where, s.Properties["lieu"], text)
	}
}

// Secrets returns the keys of an account whose secrets are known, the oldest first, including those that a restore took back.
func (m *Model) Secrets(account string) (all []Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.customer(account).secrets {
		k, ok := m.latest(account).keys[s.Label]
		s.IsActive = ok && !k.isRevoked
		all = append(all, s)
	}
	return all
}

// IssuedToken records that a token of the customer area was issued.
func (m *Model) IssuedToken(label, role, account, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[label] = &areaToken{role: role, account: account, text: text, issued: time.Now()}
}

// OpenedSession records that a session of a token was opened, whose text is its cookie. It is a token of the same role, which ends with the
// other.
func (m *Model) OpenedSession(label, token, text string, expires time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := *m.tokens[token]
	s.text, s.issued, s.parent, s.expires = text, time.Now(), token, expires
	if s.revoking.IsZero() && time.Since(s.ending) < longestEnd {
		s.revoking = time.Now()
	}
	m.tokens[label] = &s
}

// longestEnd is the longest that a request to end all sessions may be on its way: it may end sessions that were opened meanwhile.
const longestEnd = time.Minute

// RevokesToken records that the revocation of a token with its sessions, or the end of a session, begins or is acknowledged.
func (m *Model) RevokesToken(label string, isAcknowledged bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[label].end(isAcknowledged)
	m.endSessions(label, isAcknowledged)
}

// EndsSessions records that the end of all sessions of a token begins or is acknowledged.
func (m *Model) EndsSessions(token string, isAcknowledged bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[token].ending = time.Now()
	m.endSessions(token, isAcknowledged)
}

// endSessions ends the sessions of a token. Those that were opened while the end was under way may have outlived it.
func (m *Model) endSessions(token string, isAcknowledged bool) {
	for _, t := range m.tokens {
		if t.parent == token && (!isAcknowledged || !t.revoking.IsZero()) {
			t.end(isAcknowledged)
		}
	}
}

func (t *areaToken) end(isAcknowledged bool) {
	if t.revoking.IsZero() {
		t.revoking = time.Now()
	}
	if isAcknowledged {
		t.revoked = time.Now()
	}
}

// Token returns the text of the token with a label, "" if there is none.
func (m *Model) Token(label string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tokens[label]; t != nil {
		return t.text
	}
	return ""
}
