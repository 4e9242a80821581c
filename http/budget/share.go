package budget

// Share is a granted part of a budget. Its methods are safe for concurrent use.
type Share struct {
	budget     *Budget
	share      *share
	isReleased bool // guarded by the budget's lock
}

// TryShare grants a share if it fits now, ahead of those that wait. It is for a result that is in memory already.
func (b *Budget) TryShare(name string, units int64) (*Share, bool) {
	s := b.ClaimShare(name, 0)
	if !s.Resize(units) {
		b.noteOverloaded()
		s.Release()
		return nil, false
	}
	return s, true
}

// ClaimShare grants a share at once, even if it exceeds the budget. It is for work that can no longer be refused.
func (b *Budget) ClaimShare(name string, units int64) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grant(b.accountOf(name), units)
}

// grantAtOnce grants a share without queueing if it fits and nobody waits, which is the usual case. Otherwise it returns nil.
func (b *Budget) grantAtOnce(name string, units int64) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting > 0 || units > b.part || b.used+units > b.total {
		return nil
	}
	if a := b.accounts[name]; a != nil && a.used+units > b.part {
		return nil
	}
	return b.grant(b.accountOf(name), units)
}

// grant returns a share that was never in a queue. The lock is held.
func (b *Budget) grant(a *account, units int64) *Share {
	a.held++
	b.addUsed(a, units)
	return &Share{budget: b, share: &share{account: a, units: units}}
}

// accountOf returns the account with a name, and creates it unless it already holds or waits for a share. The lock is held.
func (b *Budget) accountOf(name string) *account {
	a := b.accounts[name]
	if a == nil {
		a = &account{name: name}
		b.accounts[name] = a
	}
	return a
}

// Resize changes how many units the share has. It returns false, and changes nothing, if the share was released, or if it would grow
// and the budget or the account's part does not have enough left.
func (s *Share) Resize(units int64) bool {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	more := units - s.share.units
	if s.isReleased || more > 0 && (s.share.account.used+more > b.part || b.used+more > b.total) {
		return false
	}
	b.addUsed(s.share.account, more)
	s.share.units = units
	if more < 0 {
		b.grantShares()
	}
	return true
}

// Units returns how many units the share has.
func (s *Share) Units() int64 {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.share.units
}

// Release gives the share back. A second call does nothing.
func (s *Share) Release() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if !s.isReleased {
		s.isReleased = true
		s.budget.returnUnits(s.share)
	}
}

func (b *Budget) noteOverloaded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overloaded++
}
