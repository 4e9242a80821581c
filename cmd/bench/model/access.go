package model

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// grace is how old the state behind an answer may be: a key that is revoked or issued, a plan that changes (DECISIONS 1.3).
const grace = time.Second

// gate is the check that stops a request, or passes.
type gate string

const (
	unauthorized gate = "401"
	outOfScope   gate = "403 cle_publiable_hors_perimetre"
	noOrigin     gate = "403 origine_absente"
	wrongOrigin  gate = "403 origine_non_autorisee"
	planTooLow   gate = "403 plan"
	passes       gate = "passes"
)

// checkKey checks which gate stopped a request with an API key, and reports whether the request surely had no effect.
func (m *Model) checkKey(c *Call, a Answer) (isRefused bool) {
	got := passes
	switch {
	case a.Status >= 500: // a 503 too: the key ring may have become too old during the work
		return false
	case a.Status == 401:
		got = unauthorized
	case a.Status == 403:
		if got = gate("403 " + codeOf(a)); strings.Contains(codeOf(a), "plan") {
			got = planTooLow
		}
	case !slices.Contains([]int{200, 201, 404, 409, 422, 429}, a.Status):
		m.report(KnownStatus, c.Act, "%s: %s", c.Text, short(a))
	}
	may, isSure := m.gates(c)
	if isSure && !slices.Contains(may, got) {
		m.report(ruleOf(got, may), c.Act, "%s with key %s: %s, want one of %q", c.Text, c.Key, short(a), may)
	}
	return got != passes || a.Status == 429 || a.Status == 400
}

// ruleOf names the rule that a wrong gate breaks.
func ruleOf(got gate, may []gate) Rule {
	has := func(all ...gate) bool {
		return slices.ContainsFunc(may, func(g gate) bool { return slices.Contains(all, g) })
	}
	switch {
	case got == unauthorized:
		return ActiveIsAccepted
	case has(unauthorized):
		return RevokedIsRefused
	case got == planTooLow || has(planTooLow):
		return PlanIsHeld
	case got == outOfScope || got == noOrigin || got == wrongOrigin || has(outOfScope, noOrigin, wrongOrigin):
		return ScopeIsHeld
	}
	return KnownStatus
}

// gates returns the gates that may stop a request, given every state that was possible from a second before it began until now.
func (m *Model) gates(c *Call) (may []gate, isSure bool) {
	o := m.customer(c.Account).account
	for _, a := range o.during(c.began.Add(-grace)) {
		for _, wall := range c.walls {
			for _, g := range m.gateOf(c, a.at(wall)) {
				if !slices.Contains(may, g) {
					may = append(may, g)
				}
			}
		}
	}
	return may, !o.isUntold
}

// gateOf returns the gates that may stop a request with the account in one state, in the order of DECISIONS 1. A sub-client has its agency's
// plan, and its keys end with the agency.
func (m *Model) gateOf(c *Call, a account) (may []gate) {
	k, ok := a.keys[c.Key]
	if !ok || k.isRevoked || !a.wasOpened || a.isClosed {
		return []gate{unauthorized}
	}
	paying := []account{a}
	if a.agency != "" {
		paying = m.customer(a.agency).account.during(c.began.Add(-grace))
	}
	for _, p := range paying {
		switch {
		case p.isClosed:
			may = append(may, unauthorized)
		case k.kind == "publishable" && c.Endpoint != "GET /locations/search":
			may = append(may, outOfScope)
		case k.kind == "publishable" && c.Origin == "":
			may = append(may, noOrigin)
		case k.kind == "publishable" && !slices.Contains(strings.Fields(k.origins), c.Origin):
			may = append(may, wrongOrigin)
		case rank(p.at(c.walls[0]).terms.Plan) < rank(services[c.Service]):
			may = append(may, planTooLow)
		default:
			may = append(may, passes)
		}
	}
	return may
}

// limitsOf returns the limits that a command on sites may be held to.
func (m *Model) limitsOf(c *Call) (all []limits) {
	for _, a := range m.customer(c.Account).account.during(c.began.Add(-grace)) {
		for _, wall := range c.walls {
			a := a.at(wall)
			paying := []account{a}
			if a.agency != "" {
				paying = m.customer(a.agency).account.during(c.began.Add(-grace))
			}
			for _, p := range paying {
				if n := rank(p.at(wall).terms.Plan); n >= 0 && !slices.Contains(all, plans[n].limits) {
					all = append(all, plans[n].limits)
				}
			}
		}
	}
	return all
}

// areaToken is a token of the customer area.
type areaToken struct {
	role, account, text string
	issued              time.Time // when the client learned it
	revoking, revoked   time.Time // when its revocation began, and when it was acknowledged

	ending  time.Time // when the end of all its sessions last began or was acknowledged
	parent  string    // label of the token that it is a session of; "": it is a token
	expires time.Time // by the instances' clocks; zero: never
}

// Operator is the label of the first operator's token.
const Operator = "operator"

// roles is DECISIONS 7: the roles that may use an operation, besides operators. Operations missing here are for operators alone.
var roles = map[string][]string{
	"GET /accounts":                         {"agency", "billing"},
	"POST /accounts":                        {"agency"},
	"GET /accounts/{id}":                    {"agency", "customer"},
	"POST /accounts/{id}:plan":              {"agency"},
	"POST /accounts/{id}:close":             {"agency"},
	"POST /accounts/{id}:agency":            {"agency"},
	"GET /accounts/{id}/keys":               {"agency", "customer", "billing", "auditor"},
	"POST /accounts/{id}/keys":              {"agency", "customer"},
	"POST /accounts/{id}/keys/{key}:revoke": {"agency", "customer"},
	"PUT /accounts/{id}/keys/{key}/origins": {"agency", "customer"},
	"GET /accounts/{id}/usage":              {"agency", "customer", "billing"},
	"GET /usage":                            {"billing"},
	"POST /usage:reconcile":                 {"billing"},
	"POST /usage:adjust":                    {"billing"},
	"GET /accounts/{id}/history":            {"agency", "customer", "auditor"},
	"GET /accounts/{id}/state":              {"agency", "customer", "auditor"},
	"POST /sessions:link":                   {"agency", "customer", "auditor", "billing"},
	"DELETE /sessions/{session}":            {"agency", "customer", "auditor", "billing"},
	"DELETE /sessions":                      {"agency", "customer", "auditor", "billing"},
}

// checkToken checks the answer to a request with a token, and reports whether the request surely had no effect.
func (m *Model) checkToken(c *Call, a Answer) (isRefused bool) {
	if a.Status >= 500 {
		return false
	}
	t := m.tokens[c.Token]
	isRevoking, isRevoked := !t.revoking.IsZero(), !t.revoked.IsZero() && c.began.After(t.revoked.Add(grace))
	isNew := c.began.Before(t.issued.Add(grace))
	if m.mayBeClosed(c, t.account) { // the specification leaves open what happens to the tokens of a closed account
		isRevoking = true
	}
	if !t.expires.IsZero() && slices.ContainsFunc(c.walls, func(wall time.Time) bool { return wall.After(t.expires.Add(-clocksApart)) }) {
		isRevoking = true
	}
	switch {
	case a.Status == 401:
		if !isRevoking && !isNew {
			m.report(ActiveIsAccepted, c.Act, "%s with token %s: %s", c.Text, c.Token, short(a))
		}
		return true
	case isRevoked:
		m.report(RevokedIsRefused, c.Act, "%s with token %s: %s", c.Text, c.Token, short(a))
	}
	mayUse := t.role == "operator" || slices.Contains(roles[c.Endpoint], t.role)
	isOwn := t.account == "" || c.Account == "" || t.account == c.Account || m.mayBeOf(c, t.account)
	switch {
	case !mayUse && a.Status != 403, mayUse && !isOwn && a.Status != 404, mayUse && a.Status == 403 && isOwn:
		m.report(RoleIsHeld, c.Act, "%s as %s of %q: %s", c.Text, t.role, t.account, short(a))
	case !slices.Contains([]int{200, 201, 202, 403, 404, 409, 422}, a.Status):
		m.report(KnownStatus, c.Act, "%s: %s", c.Text, short(a))
	}
	return !mayUse || !isOwn || a.Status == 404 && t.role == "agency" && m.mayBeForeign(c, t.account)
}

// mayBeForeign reports whether the account of a call may, by some clock, not be a sub-client of an agency: it is about to join or to leave.
func (m *Model) mayBeForeign(c *Call, agency string) bool {
	return c.Account != agency && slices.ContainsFunc(m.customer(c.Account).account.during(c.began.Add(-grace)), func(a account) bool {
		return a.agency != agency || a.at(c.walls[0].Add(clocksApart)).agency != agency
	})
}

// mayBeClosed reports whether an account may be closed.
func (m *Model) mayBeClosed(c *Call, id string) bool {
	return id != "" && slices.ContainsFunc(m.customer(id).account.during(c.began.Add(-grace)), func(a account) bool { return a.isClosed })
}

// mayBeOf reports whether the account of a call may be a sub-client of an agency.
func (m *Model) mayBeOf(c *Call, agency string) bool {
	return slices.ContainsFunc(m.customer(c.Account).account.during(c.began.Add(-grace)), func(a account) bool {
		return a.at(c.walls[0]).agency == agency || a.nextAgency == agency
	})
}

// marker matches the id of every account, and nothing else.
var marker = regexp.MustCompile(`compte-[0-9]+`)

// checkForeign checks that an answer to one account contains nothing of any other account, except its agency or its sub-clients.
func (m *Model) checkForeign(c *Call, a Answer) {
	if c.Account == "" {
		return
	}
	for _, id := range marker.FindAllString(string(a.Body), -1) {
		if id == c.Account || m.customer(c.Account).related[id] {
			continue
		}
		m.report(NoForeignData, c.Act, "%s of %s: %s is in %s", c.Text, c.Account, id, short(a))
		return
	}
}

// relate notes that a command makes an agency and an account know each other: each stays in the other's history.
func (m *Model) relate(op Operation) {
	agency := ""
	switch command := op.OnAccount.(type) {
	case OpenAccount:
		agency = command.Agency
	case JoinAgency:
		agency = command.Agency
	}
	if agency != "" {
		m.customer(op.Account).related[agency] = true
		m.customer(agency).related[op.Account] = true
	}
}
