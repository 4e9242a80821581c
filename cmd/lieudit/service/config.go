package service

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"lieudit/cmd/lieudit/instance"
	"lieudit/http/api"
	"lieudit/queries/route"
	"lieudit/schemas/token"
)

// Config is what a service runs on. An empty address of a server means the embedded part, whose files are in Data. Data, Log,
// Out, TokenPrefixes and the three listeners' addresses are required. Sizes are bytes. Run trusts the values: package
// cli checks those that depend on each other.
type Config struct {
	Data                string         // folder for everything embedded; made when absent
	Listen              string         // address of the API
	AreaListen          string         // address of the customer area
	AreaURL             *url.URL       // at which browsers reach the customer area; nil: localhost, with the port of its listener
	APIURL              *url.URL       // at which customers reach the API, for the examples of the pages; nil: the address of its listener
	OpsListen           string         // address of health, metrics and profiles
	OpsHosts            []string       // names by which that is addressed, besides localhost, its own address and the machine's name
	PeerURL             string         // URL at which other instances reach the customer area; "": that of its listener's address
	EventStore          string         // esdb://… or "" for the journal
	Postgres            string         // postgres://… or "" for SQLite
	Meilisearch         string         // http://KEY@HOST:PORT, or "" to search sites in memory
	AddressIndex        string         // OwnIndex or MeilisearchIndex: the source of address candidates
	Router              RouterSetting  // what finds routes
	VaultKey            []byte         // master key of the vault, 32 bytes; nil: data keys are stored in clear
	AcceptLostKeys      bool           // serve although the vault lost keys that the log needs
	AcceptLostUsage     bool           // count requests from zero although the core log names a usage log that is missing
	Demo                bool           // open the demo account on an empty log, and invent addresses if there are none
	UsageShards         int            // over how many streams of the usage log contracts are spread, from a month that is opened next
	PeriodGrace         time.Duration  // how long after its end a period still accepts late ticks before it is closed
	CountToTheLetter    bool           // count everything the specification does not exempt; otherwise in the customer's favour
	Unthrottled         bool           // publishable keys are not throttled: a proxy does it
	MaxConnections      int            // of the API, and again of the customer area; 0: DefaultMaxConnections
	BodyBudget          int64          // bytes of large request bodies in memory; 0: DefaultBodyBudget
	AccountBodyBudget   int64          // of these, the bytes of one account; 0: half of BodyBudget
	AnswerBudget        int64          // bytes of large answers in memory; 0: DefaultAnswerBudget
	AccountAnswerBudget int64          // of these, the bytes of one account; 0: half of AnswerBudget
	TrustedProxies      []netip.Prefix // in front of the API; what they say of their connections is the client's address
	TokenPrefixes       token.Prefixes
	Log                 *slog.Logger
	Out                 io.Writer            // receives the text that people read at start
	IsTerminal          bool                 // Out is a terminal: secrets may be shown on it; otherwise they go into files
	Now                 func() time.Time     // wall clock; called by many goroutines; nil: this machine's
	Elapsed             func() time.Duration // elapsed time, to compare Now with; nil: this machine's
	AcceptClock         bool                 // the wall clock is right as it stands, whatever an earlier process or the log says
	Drain               time.Duration        // how long the service continues serving once Run's context has ended
	FinishTimeout       time.Duration        // how long running requests may take to end after that; 0: DefaultFinishTimeout
	KeyRingTimeout      time.Duration        // how long the API's socket waits for the key ring; 0: DefaultKeyRingTimeout
	NotifySocket        string               // socket at which a supervisor such as systemd learns that the instance is ready, or ""
}

const (
	// DefaultFinishTimeout is how long running requests may take to end after the sockets were closed.
	DefaultFinishTimeout = 30 * time.Second
	// DefaultKeyRingTimeout is how long the API's socket waits at start for a key ring that stands at the log's end.
	DefaultKeyRingTimeout = 10 * time.Second
	// DefaultMaxConnections is the cap of connections of the API, and again of the customer area.
	DefaultMaxConnections = 8192
	// DefaultBodyBudget is the cap in bytes of large request bodies in memory at once.
	DefaultBodyBudget = instance.DefaultBodyBudget
	// MinAccountBodyBudget is the smallest AccountBodyBudget in bytes: the largest single body must fit.
	MinAccountBodyBudget = api.MaxBodyBytes
	// DefaultAnswerBudget is the cap in bytes of large answers in memory at once.
	DefaultAnswerBudget = instance.DefaultAnswerBudget
	// MinAccountAnswerBudget is the smallest AccountAnswerBudget in bytes. A larger answer gets all of it, alone.
	MinAccountAnswerBudget = 8 << 20
)

// wallTime returns the time of the wall clock, right or wrong.
func (c Config) wallTime() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// describeLog and the other describe functions return, for the text at start, what each part runs on. They show no secret.
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

// hideKey removes the user from a URL, which is Meilisearch's key. It cuts at the last @, since a key may contain one that
// is not escaped.
func hideKey(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// hidePassword removes the password and the query from a connection string; the query may hold a password too. It hides a
// text that is not a URL completely.
func hidePassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "(hidden)"
	}
	rest, _, _ = strings.Cut(rest, "?")
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

// settings are those of the instance.
func (c Config) settings() instance.Settings {
	return instance.Settings{
		PeriodGrace: c.PeriodGrace, UsageShards: int64(c.UsageShards), StrictCounting: c.CountToTheLetter, Unthrottled: c.Unthrottled, BodyBudget: c.BodyBudget,
		AccountBodyBudget: c.AccountBodyBudget, AnswerBudget: c.AnswerBudget, AccountAnswerBudget: c.AccountAnswerBudget, TrustedProxies: c.TrustedProxies, TokenPrefixes: c.TokenPrefixes,
		AcceptLostKeys: c.AcceptLostKeys, AcceptClock: c.AcceptClock, Demo: c.Demo,
	}
}

// Engines that find routes, as --router names them.
const (
	OwnRouter      = "own"      // the own engine on the road network of the data folder
	OSRMRouter     = "osrm"     // a server of OSRM for each mode of travel
	ValhallaRouter = "valhalla" // a server of Valhalla
)

// RouterSetting is the engine that finds routes and, for one on servers, their addresses.
type RouterSetting struct {
	Engine  string
	Servers map[route.Mode]string // base URL of the server of each mode; Valhalla's answers all modes. nil for OwnRouter
}

// routerForms are the forms of a RouterSetting as text.
const routerForms = "own, osrm:car=URL,foot=URL,bike=URL or valhalla:URL"

// ParseRouter parses a setting: own, osrm:car=URL,foot=URL,bike=URL with one mode or more, or valhalla:URL. Its errors do not
// repeat a URL, which may hold a password.
func ParseRouter(text string) (RouterSetting, error) {
	engine, rest, hasRest := strings.Cut(text, ":")
	s := RouterSetting{Engine: strings.ToLower(engine)}
	switch {
	case s.Engine == OwnRouter && !hasRest:
		return s, nil
	case s.Engine == OwnRouter:
		return s, errors.New("own takes nothing after it: its road network is imported with lieudit roads import")
	case s.Engine == ValhallaRouter:
		s.Servers = make(map[route.Mode]string)
		for _, mode := range modes() {
			s.Servers[mode] = rest
		}
		return s, checkRouterURL(rest)
	case s.Engine == OSRMRouter:
		return s, s.parseServers(rest)
	}
	return s, fmt.Errorf("it is %s", routerForms)
}

// modes are all modes of travel.
func modes() []route.Mode { return []route.Mode{route.Car, route.Foot, route.Bike} }

// parseServers parses what follows osrm: a mode and a URL for each server.
func (s *RouterSetting) parseServers(text string) error {
	s.Servers = make(map[route.Mode]string)
	for _, server := range strings.Split(text, ",") {
		name, address, ok := strings.Cut(server, "=")
		mode := route.Mode(strings.TrimSpace(name))
		if !ok || !slices.Contains(modes(), mode) {
			return errors.New("osrm takes a server for each mode: osrm:car=URL,foot=URL,bike=URL; a mode that is left out has no routes")
		}
		if s.Servers[mode] != "" {
			return fmt.Errorf("osrm has two servers for %s", mode)
		}
		if err := checkRouterURL(address); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		s.Servers[mode] = address
	}
	return nil
}

// checkRouterURL refuses a URL that is not the address of a server. A query would swallow the paths of the requests.
func checkRouterURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("the address of a routing server is of the form http://HOST:PORT")
	}
	return nil
}

// describeRouter returns, for the text at start, what finds routes. It shows no password.
func (c Config) describeRouter() string {
	switch c.Router.Engine {
	case OSRMRouter:
		var servers []string
		for _, mode := range modes() {
			if address := c.Router.Servers[mode]; address != "" {
				servers = append(servers, fmt.Sprintf("%s %s", mode, hidePassword(address)))
			}
		}
		return "OSRM, " + strings.Join(servers, ", ")
	case ValhallaRouter:
		return "Valhalla, " + hidePassword(c.Router.Servers[route.Car])
	}
	return "own"
}
