package usage

// QueuedRequests is how many requests wait in the books for a flight that has not begun.
func (m *Meter) QueuedRequests() (n int) {
	m.contracts.Range(func(_, c any) bool {
		if p := c.(*contract).current.Load(); p != nil {
			p.queue.mu.Lock()
			defer p.queue.mu.Unlock()
			n += len(p.queue.pending)
		}
		return true
	})
	return n
}

// IsLogSilent says whether the log is thought to be silent.
func (m *Meter) IsLogSilent() bool { return m.silentSince.Load() != 0 }

// EvictContract forgets an account's contract, as it is done with one that nobody asks for.
func (m *Meter) EvictContract(account string) { m.contracts.Delete(account) }
