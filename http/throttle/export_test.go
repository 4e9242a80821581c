package throttle

// ClientCount is how many clients are kept.
func (t *Throttle) ClientCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.busyUntil)
}
