package clock

import (
	"encoding/json"
	"os"
	"time"
)

// bootTime is the content of the file: when the machine booted, by a clock that was believed. Sleep counts as time since the
// boot.
type bootTime struct {
	Boot     string    `json:"boot"`
	BootedAt time.Time `json:"booted_at"`
}

// loadBootTime returns when the machine booted, according to the file. ok is false if the file is missing, damaged or from an
// earlier boot.
func (c *Clock) loadBootTime() (bootedAt time.Time, ok bool) {
	boot, _ := c.boot()
	if c.file == "" || boot == "" {
		return time.Time{}, false
	}
	var kept bootTime
	text, err := os.ReadFile(c.file)
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return time.Time{}, false
	}
	return kept.BootedAt, kept.Boot == boot && !kept.BootedAt.IsZero()
}

// saveBootTime writes the file. If that fails, the next process believes its wall clock, or the old file.
func (c *Clock) saveBootTime() {
	boot, age := c.boot()
	if c.file == "" || boot == "" {
		return
	}
	_, elapsed := c.read()
	now := time.Unix(0, c.offset.Load()+int64(elapsed)).UTC()
	text, err := json.Marshal(bootTime{boot, now.Add(-age)})
	if err == nil {
		err = writeFile(c.file, text)
	}
	if err != nil {
		c.log.Warn("the file of the clock was not written", "file", c.file, "reason", err)
	}
}

// writeFile replaces a file atomically.
func writeFile(name string, text []byte) error {
	unfinished := name + ".new"
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, name)
}
