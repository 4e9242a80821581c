package usage

// Queued is how many requests wait in the books for a flight that has not begun.
func (l *Ledger) Queued() (n int) {
	l.contracts.Range(func(_, c any) bool {
		if b := c.(*contract).book.Load(); b != nil {
			b.queue.mu.Lock()
			defer b.queue.mu.Unlock()
			n += len(b.queue.waiting)
		}
		return true
	})
	return n
}

// CountsSilence says whether the log is thought to be silent.
func (l *Ledger) CountsSilence() bool { return l.troubled.Load() != 0 }

// PutAway forgets an account's contract, as it is done with one that nobody asks for.
func (l *Ledger) PutAway(account string) { l.contracts.Delete(account) }
