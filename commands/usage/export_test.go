package usage

// QueuedRequests returns how many requests wait for a batch that has not begun.
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

// IsLogSilent reports whether a silence of the log is being counted.
func (m *Meter) IsLogSilent() bool { return m.silentSince.Load() != 0 }

// EvictContract evicts an account's contract, as evictIdlePeriods does.
func (m *Meter) EvictContract(account string) { m.contracts.Delete(account) }
