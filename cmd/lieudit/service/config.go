// Package service puts the parts of lieudit together and runs them: which log, which databases, which
// listeners, in which order they start and stop. It is the only place that knows every part.
package service

import (
	"io"
	"log/slog"
	"strings"
	"time"

	"lieudit/http/api"
	"lieudit/schemas/token"
)

// Config is what a service runs on. Empty addresses of servers mean the embedded part in Data.
type Config struct {
	Data              string        // folder for everything embedded
	Listen            string        // the API
	AreaListen        string        // the customer area
	OpsListen         string        // health, metrics, profiles
	EventStore        string        // esdb://… or "" for the journal
	Postgres          string        // postgres://… or "" for SQLite
	Meilisearch       string        // http://KEY@HOST:PORT, where what is asked of it is searched
	AddressIndex      string        // OwnIndex or Meilisearch: where the candidates of addresses come from
	VaultKey          []byte        // master key of the vault, 32 bytes; nil for none
	AcceptLostKeys    bool          // serve although the vault lost keys that the log needs
	Demo              bool          // open the demo account on an empty log, and invent addresses where there are none
	PeriodGrace       time.Duration // after its end, in which a period still takes what was on its way, before it is closed
	CountToTheLetter  bool          // count all that the specification does not exempt
	Unthrottled       bool          // a proxy holds publishable keys to their pace
	MaxConnections    int           // the most of the API, and of the customer area; 0: DefaultConnections
	BodyBudget        int64         // bytes of large request bodies in memory; 0: DefaultBodyBudget
	AccountBodyBudget int64         // those of one account; 0: half of them
	TokenPrefixes     token.Prefixes
	Log               *slog.Logger
	Out               io.Writer // what people read at start
	Now               func() time.Time
	DrainTimeout      time.Duration // how long running requests may take to end at shutdown
}

const (
	// DefaultMaxConnections is how many connections the API takes, and the customer area.
	DefaultMaxConnections = 8192
	// DefaultBodyBudget is how many bytes of large request bodies are in memory at once.
	DefaultBodyBudget = 256 << 20
	// MinAccountBodyBudget is the least of it that one account needs: its largest body.
	MinAccountBodyBudget = api.MaxBodyBytes
)

func (c Config) describeLog() string {
	if c.EventStore != "" {
		return hidePassword(c.EventStore)
	}
	return "journal in " + c.Data
}

func (c Config) describeReadModels() string {
	if c.Postgres != "" {
		return hidePassword(c.Postgres)
	}
	return "SQLite in " + c.Data
}

func (c Config) describeAddressIndex() string {
	if c.AddressIndex == MeilisearchIndex {
		return "Meilisearch, " + hideKey(c.Meilisearch)
	}
	return "the vintage's own"
}

// hideKey is an address as it may be shown, where even the user is a secret.
func hideKey(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// hidePassword is an address as it may be shown.
func hidePassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "(hidden)"
	}
	rest, _, _ = strings.Cut(rest, "?") // a password may stand there too
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		rest = user + "@" + rest[at+1:]
	}
	return scheme + "://" + rest
}


func (c Config) describeSiteSearch() string {
	if c.Meilisearch == "" {
		return "in memory"
	}
	return "Meilisearch, " + hideKey(c.Meilisearch)
}

