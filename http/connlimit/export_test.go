package connlimit

// IdleTurns is how often connections of a listener have become idle. A client has its answer a moment before that is noticed.
func IdleTurns(l *Listener) int64 { return l.idleTurns.Load() }
