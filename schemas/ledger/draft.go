package ledger

// TickDraft is a tick in the making: what would count if it were next in the stream.
type TickDraft struct {
	period   *PeriodState
	used     int64
	accounts []draftAccount
}

type draftAccount struct {
	account string
	used    int64
}

// DraftTick begins a tick.
func (b *PeriodState) DraftTick() *TickDraft { return &TickDraft{period: b} }

// AddRequest adds one request with a key of an account, unless the verdict says that it would not count.
func (d *TickDraft) AddRequest(account, key string) Verdict {
	if _, v := d.period.Remaining(account, key); v != Counted {
		return v
	}
	b, s := d.period, d.accountOf(account)
	contract, a := b.accounts[b.Contract], b.accounts[account]
	if b.used+d.used >= contract.cap || account != b.Contract && a.used+s.used >= a.cap {
		return CapReached
	}
	d.used++
	s.used++
	return Counted
}

func (d *TickDraft) accountOf(account string) *draftAccount {
	for i := range d.accounts {
		if d.accounts[i].account == account {
			return &d.accounts[i]
		}
	}
	d.accounts = append(d.accounts, draftAccount{account: account})
	return &d.accounts[len(d.accounts)-1]
}
