package customers

import (
	"maps"
	"slices"
)

// The model is what a customer knows: what it was told was done, what it was told was not, and what it does not know. It is written
// from the specification and the decisions beside it, and knows nothing of how the service works.

// fact is a value that is known, or is one of several: after a write without an answer it is the old or the new one.
type fact[T comparable] struct{ possible []T }

func known[T comparable](v T) fact[T] { return fact[T]{[]T{v}} }

// allows says whether the value may be v.
func (f fact[T]) allows(v T) bool { return slices.Contains(f.possible, v) }

// is says whether the value is certainly v.
func (f fact[T]) is(v T) bool { return len(f.possible) == 1 && f.possible[0] == v }

// become is the fact after a write of v: v where it was acknowledged, else v or what it was.
func (f fact[T]) become(v T, acknowledged bool) fact[T] {
	if acknowledged {
		return known(v)
	}
	if f.allows(v) {
		return f
	}
	return fact[T]{append(slices.Clone(f.possible), v)}
}

// site is what a customer knows of a site.
type site struct {
	Name     string
	IsActive bool
}

// sites are those of a referential, by external_id. They are never changed in place.
type sites map[string]site

// change is what a write does to the sites of a referential.
type change func(sites) sites

// referential is what is known of a referential: its state, and the sets of sites that it may hold.
type referential struct {
	isArchived fact[bool]
	possible   []sites
}

// apply is what is known after a write that was acknowledged, or may have been made.
func (r *referential) apply(write change, acknowledged bool) {
	after := make([]sites, len(r.possible))
	for i, s := range r.possible {
		after[i] = write(s)
	}
	if !acknowledged {
		after = append(slices.Clone(r.possible), after...)
	}
	r.possible = distinct(after)
}

// applyBoth is what is known after two writes at once: each order is possible, with each that is not acknowledged or without it.
func (r *referential) applyBoth(a, b change, acknowledgedA, acknowledgedB bool) {
	first, second := *r, *r
	first.apply(a, acknowledgedA)
	first.apply(b, acknowledgedB)
	second.apply(b, acknowledgedB)
	second.apply(a, acknowledgedA)
	r.possible = distinct(append(first.possible, second.possible...))
}

// distinct drops the sets that stand there twice.
func distinct(all []sites) (kept []sites) {
	for _, s := range all {
		if !slices.ContainsFunc(kept, func(k sites) bool { return maps.Equal(k, s) }) {
			kept = append(kept, s)
		}
	}
	return kept
}

// put writes one site, which is active after that.
func put(id, name string) change {
	return func(s sites) sites { return s.with(id, site{name, true}) }
}

// deactivate makes a site inactive, if it is there.
func deactivate(id string) change {
	return func(s sites) sites {
		was, ok := s[id]
		if !ok {
			return s
		}
		return s.with(id, site{was.Name, false})
	}
}

// deactivateAll is what archiving a referential does to its sites.
func deactivateAll(s sites) sites {
	all := make(sites, len(s))
	for id, was := range s {
		all[id] = site{was.Name, false}
	}
	return all
}

// syncTo makes a set all the active sites of the referential; the others stay, inactive.
func syncTo(set map[string]string) change {
	return func(s sites) sites {
		all := deactivateAll(s)
		for id, name := range set {
			all[id] = site{name, true}
		}
		return all
	}
}

func (s sites) with(id string, v site) sites {
	changed := maps.Clone(s)
	if changed == nil {
		changed = sites{}
	}
	changed[id] = v
	return changed
}

// key is what is known of an API key whose token the customer has.
type key struct {
	ID, Token string
	issuedAt  int64 // elapsed nanoseconds when the issue was acknowledged
	isRevoked fact[bool]
	revokedAt int64 // elapsed nanoseconds when the revocation was acknowledged; 0: never
}

// count is how many requests count: those that were served, and at most as many more as had no answer that says.
type count struct{ served, unknown int64 }

func (c *count) add(other count) { c.served += other.served; c.unknown += other.unknown }

// allows says whether a shown number may be right.
func (c count) allows(n int64) bool { return n >= c.served && n <= c.served+c.unknown }

// account is all that is known of an account.
type account struct {
	ID, Name      string
	Plan          string
	quota         fact[int64]
	quotaIsNew    bool  // raised since the last quiet moment
	quotaRaisedTo int64 // what an acknowledged raise asked for; 0: none
	isOpen        fact[bool]
	isClosed      fact[bool]
	closedAt      int64 // as key.revokedAt
	isErased      fact[bool]
	keys          []*key
	lostKeys      []*key // issued on a log that was restored to an older copy since
	unknownKeys   int    // issues without an answer: that many keys may be there that nobody has
	referentials  map[string]*referential
	used          map[string]*count // by key id, since the account was opened
	today         count             // of all keys, since the last quiet moment
	periodTotal   int64             // of the running period at the last quiet moment
	periodMayEnd  bool              // before the next quiet moment

	unknownReferentials map[string]bool  // whose opening has no answer
	counted             map[string]int64 // total by the period's name at the last quiet moment
}

// clone is a copy that later changes leave alone.
func (a *account) clone() *account {
	c := *a
	c.keys = make([]*key, len(a.keys))
	for i, k := range a.keys {
		copied := *k
		c.keys[i] = &copied
	}
	c.referentials = map[string]*referential{}
	for code, r := range a.referentials {
		copied := *r
		c.referentials[code] = &copied
	}
	c.used = map[string]*count{}
	for id, n := range a.used {
		copied := *n
		c.used[id] = &copied
	}
	c.counted, c.unknownReferentials = maps.Clone(a.counted), maps.Clone(a.unknownReferentials)
	return &c
}

// usedBy is the count of a key's requests.
func (a *account) usedBy(id string) *count {
	if a.used[id] == nil {
		a.used[id] = &count{}
	}
	return a.used[id]
}
