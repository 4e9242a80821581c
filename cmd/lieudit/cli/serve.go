package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backup"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/vault"
	"lieudit/http/clientip"
	"lieudit/http/customerarea"
	"lieudit/http/hostcheck"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/token"
)

// serveHelp describes the two ways to run: everything embedded in the data folder, or on servers.
const serveHelp = `Without flags all is embedded: the log, the databases and the keys are files of the data folder. With
--eventstore and --postgres the same program runs on servers, in as many instances as you like.
Ctrl-C lets running requests end, for 30 s at most; a second one does not wait. A termination signal does so too, after --drain.

  lieudit serve
  lieudit serve --data /var/lib/lieudit --listen :8080
  lieudit serve --eventstore 'esdb://127.0.0.1:2113?tls=false' --postgres postgres://lieudit@127.0.0.1/lieudit`

// serveCommand is lieudit serve. It checks the flags that depend on each other and runs Program.Serve until the context
// ends. An error in the flags alone is wrong usage (exit code 2); a service that cannot start has failed (1).
func (p Program) serveCommand() *cli.Command {
	return &cli.Command{
		Name:        "serve",
		Usage:       "Run the service: the API, the customer area, health and metrics",
		Description: serveHelp,
		Flags:       append(p.backendFlags(), p.behaviourFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			// Only what the flags show is checked here. Whether servers and files can be used, the service finds at start.
			config := p.serviceConfig(c)
			if err := config.TokenPrefixes.Validate(); err != nil {
				return terminal.NewUsageError(c, "%v", err)
			}
			if err := validatePostgres(c, config.Postgres); err != nil {
				return err
			}
			if err := ValidateMeilisearch(c, config); err != nil {
				return err
			}
			if err := errors.Join(validateBodyBudgets(c), validateAnswerBudgets(c)); err != nil {
				return err
			}
			var err error
			if config.TrustedProxies, err = clientip.ParseTrusted(c.String("trusted-proxies")); err != nil {
				return terminal.NewUsageError(c, "--trusted-proxies (LIEUDIT_TRUSTED_PROXIES): %v", err)
			}
			if config.OpsHosts, err = hostcheck.ParseNames(c.String("ops-hosts")); err != nil {
				return terminal.NewUsageError(c, "--ops-hosts (LIEUDIT_OPS_HOSTS): %v", err)
			}
			if err = validatePeerURL(c, config.PeerURL); err != nil {
				return err
			}
			if address := c.String("area-url"); address != "" {
				if config.AreaURL, err = customerarea.ParseAddress(address); err != nil {
					return terminal.NewUsageError(c, "--area-url (LIEUDIT_AREA_URL): %v", err)
				}
			}
			if config.Router, err = service.ParseRouter(c.String("router")); err != nil {
				return terminal.NewUsageError(c, "--router (LIEUDIT_ROUTER): %v", err)
			}
			if config.VaultKey, err = p.readMasterKey(c, vaultKeyName); err != nil {
				return err
			}
			return p.Serve(ctx, config)
		},
	}
}

// backendFlags returns the flags for the service's addresses, and for its log, databases and searches.
func (p Program) backendFlags() []cli.Flag {
	return []cli.Flag{
		p.dataFlag(),
		// By default the listeners are reachable from this machine alone.
		p.StringFlag("listen", "127.0.0.1:8080", "`ADDRESS` of the API"),
		p.StringFlag("area-listen", "127.0.0.1:8081", "`ADDRESS` of the customer area"),
		p.StringFlag("area-url", "", "`URL` at which browsers open the customer area, such as https://espace.example.fr; http://localhost with its port when left out"),
		p.StringFlag("ops-listen", "127.0.0.1:8082", "`ADDRESS` of health, metrics and profiles; keep it private"),
		p.StringFlag("ops-hosts", "", "`NAME,…` by which clients address that, where it is not an IP address, localhost or the machine's name"),
		p.StringFlag("peer-url", "", "`URL` at which other instances reach this one's customer area, to fetch vintages and road networks; its address when left out"),
		p.StringFlag("eventstore", "", "EventStoreDB or lieudit node for the log, as `esdb://…`; a journal in the data folder when left out"),
		p.StringFlag("postgres", "", "Postgres for the read models, as `postgres://…`; SQLite in the data folder when left out"),
		p.StringFlag("meilisearch", "", "Meilisearch, as `http://KEY@HOST:PORT`, for what is to be searched there: the sites, and addresses with --address-index (LIEUDIT_MEILISEARCH_KEY may hold the key)"),
		p.addressIndexFlag(),
		p.StringFlag("router", service.OwnRouter, "`WHAT` finds routes: own (lieudit roads import), osrm:car=URL,foot=URL,bike=URL or valhalla:URL"),
		p.vaultKeyFlag(),
	}
}

// dataFlag names the data folder. Commands that work on the folder of a service have it too.
func (p Program) dataFlag() cli.Flag {
	f := p.StringFlag("data", "./lieudit-data", "`FOLDER` for everything embedded")
	f.TakesFile = true
	return f
}

// MeilisearchURL returns the address that --meilisearch gives, "" for none. When the address has no key, it adds that of
// LIEUDIT_MEILISEARCH_KEY as the user of the URL: other users of the machine can see a flag, and not a variable.
func MeilisearchURL(c *cli.Command, lookupEnv func(string) (string, bool)) string {
	address := c.String("meilisearch") // an address that cannot be parsed is returned as it is: ValidateMeilisearch refuses it
	key, _ := lookupEnv("LIEUDIT_MEILISEARCH_KEY")
	if u, err := url.Parse(address); err == nil && address != "" && key != "" && u.User == nil {
		u.User = url.User(key)
		return u.String()
	}
	return address
}

// addressIndexFlag selects the source of address candidates.
func (p Program) addressIndexFlag() cli.Flag {
	f := p.StringFlag("address-index", service.OwnIndex, "`WHERE` addresses are searched: own (the vintage) or meilisearch (slower; needs --meilisearch)")
	f.Validator = terminal.OneOf(service.OwnIndex, service.MeilisearchIndex)
	return f
}

// ValidateMeilisearch refuses an address that is not of Meilisearch's form, and a missing one if the address index needs
// it. The error is wrong usage. It does not repeat the address, which may hold a key.
func ValidateMeilisearch(c *cli.Command, config service.Config) error {
	if config.Meilisearch == "" {
		if config.AddressIndex == service.MeilisearchIndex {
			return terminal.NewUsageError(c, "--address-index meilisearch needs --meilisearch (LIEUDIT_MEILISEARCH)")
		}
		return nil
	}
	if _, err := meiliclient.ParseServer(config.Meilisearch); err != nil {
		return terminal.NewUsageError(c, "--meilisearch (LIEUDIT_MEILISEARCH): %v", err)
	}
	return nil
}

// validatePostgres refuses an address that is not Postgres's: the databases are opened by their address, and any other
// would become a SQLite file of that name. "" is accepted. The error does not repeat the address, which may hold a password.
func validatePostgres(c *cli.Command, address string) error {
	if address == "" || strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		return nil
	}
	return terminal.NewUsageError(c, "--postgres (LIEUDIT_POSTGRES) is not of the form postgres://USER@HOST/DATABASE")
}

// behaviourFlags are the flags that say how the service counts, limits and ends. Those whose default is not a text name
// their variable themselves: terminal.StringFlag does so only for texts.
func (p Program) behaviourFlags() []cli.Flag {
	return []cli.Flag{
		p.StringFlag("secret-prefix", token.DefaultPrefixes.Secret, "what secret keys begin with"),
		p.StringFlag("publishable-prefix", token.DefaultPrefixes.Publishable, "what publishable keys begin with"),
		p.StringFlag("area-prefix", token.DefaultPrefixes.Area, "what customer-area tokens begin with"),
		p.drainFlag(),
		&cli.DurationFlag{Name: "grace", Value: time.Hour, Usage: "how long a period that has ended takes late requests before its books are closed", Sources: p.EnvSource("LIEUDIT_GRACE")},
		&cli.IntFlag{Name: "usage-shards", Value: 1, Usage: "over how many streams the usage of each month is spread; the first instance that counts in a month decides for it", Sources: p.EnvSource("LIEUDIT_USAGE_SHARDS"), Validator: checkShards},
		&cli.BoolFlag{Name: "count-to-the-letter", Usage: "count also what a valid key was refused (403, 404, 405, 413) and what failed (5xx)", Sources: p.EnvSource("LIEUDIT_COUNT_TO_THE_LETTER")},
		&cli.BoolFlag{Name: "no-throttle", Usage: "do not hold publishable keys to 20 requests a second and address: a proxy does", Sources: p.EnvSource("LIEUDIT_NO_THROTTLE")},
		&cli.BoolFlag{Name: "accept-lost-keys", Usage: "start although the vault lost keys that the log needs; what was sealed with them stays unreadable", Sources: p.EnvSource("LIEUDIT_ACCEPT_LOST_KEYS")},
		&cli.BoolFlag{Name: "accept-lost-usage", Usage: "start although the usage log is lost; what accounts have used so far then counts as nothing", Sources: p.EnvSource("LIEUDIT_ACCEPT_LOST_USAGE")},
		p.acceptClockFlag("LIEUDIT_ACCEPT_CLOCK", "; what was counted in periods that begin in more than a day is taken back"),
		p.StringFlag("trusted-proxies", "", "`CIDR,…` of the proxies in front: of their requests the throttle takes the address in X-Forwarded-For or Forwarded"),
		&cli.IntFlag{Name: "connections", Value: service.DefaultMaxConnections, Usage: "the `MOST` connections of the API, and of the customer area; at it an idle one of the address with the most goes", Sources: p.EnvSource("LIEUDIT_CONNECTIONS"), Validator: terminal.AtLeastOne},
		&cli.IntFlag{Name: "body-budget", Value: service.DefaultBodyBudget >> 20, Usage: "`MIB` of large request bodies in memory at once; others wait", Sources: p.EnvSource("LIEUDIT_BODY_BUDGET")},
		&cli.IntFlag{Name: "account-body-budget", Usage: "`MIB` of these for one account; half of them when left out", Sources: p.EnvSource("LIEUDIT_ACCOUNT_BODY_BUDGET")},
		&cli.IntFlag{Name: "answer-budget", Value: service.DefaultAnswerBudget >> 20, Usage: "`MIB` of large answers in memory at once, until they are read; others wait", Sources: p.EnvSource("LIEUDIT_ANSWER_BUDGET")},
		&cli.IntFlag{Name: "account-answer-budget", Usage: "`MIB` of these for one account; half of them when left out", Sources: p.EnvSource("LIEUDIT_ACCOUNT_ANSWER_BUDGET")},
		&cli.BoolFlag{Name: "no-demo", Usage: "open no demo account on an empty log", Sources: p.EnvSource("LIEUDIT_NO_DEMO")},
		p.logFlag(),
	}
}

// acceptClockFlag returns the flag with which an operator confirms that the machine's clock is right. variable sets it, too; effect is
// what else it does.
func (p Program) acceptClockFlag(variable, effect string) cli.Flag {
	return &cli.BoolFlag{Name: "accept-clock", Usage: "take this machine's clock for right as it stands, although it has jumped or differs from the log's times" + effect, Sources: p.EnvSource(variable)}
}

// drainFlag returns the flag for how long an instance that is stopping continues serving. A proxy needs that time to notice; somebody
// who presses Ctrl-C on a terminal has no proxy.
func (p Program) drainFlag() cli.Flag {
	f := &cli.DurationFlag{Name: "drain", Value: 5 * time.Second, Usage: "how long a service that is to end serves on, until proxies have noticed (0s on a terminal)", Sources: p.EnvSource("LIEUDIT_DRAIN"), Validator: terminal.NotNegative}
	if p.IsTerminal {
		f.Value = 0
	}
	return f
}

// validatePeerURL refuses a --peer-url that names no server.
func validatePeerURL(c *cli.Command, address string) error {
	if u, err := url.Parse(address); address != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil) {
		return terminal.NewUsageError(c, "--peer-url (LIEUDIT_PEER_URL) is an address such as http://10.0.0.11:8081")
	}
	return nil
}

// validateBodyBudgets refuses budgets in which the largest single body would never fit. The flags
// are in MiB, MinAccountBodyBudget in bytes. Without a budget for one account, that is half of the whole.
func validateBodyBudgets(c *cli.Command) error {
	total, account := c.Int("body-budget"), c.Int("account-body-budget")
	switch {
	case account == 0 && total < 2*service.MinAccountBodyBudget>>20:
		return terminal.NewUsageError(c, "--body-budget (LIEUDIT_BODY_BUDGET) is at least %d: half of it has to hold the largest body", 2*service.MinAccountBodyBudget>>20)
	case account != 0 && (account < service.MinAccountBodyBudget>>20 || account > total):
		return terminal.NewUsageError(c, "--account-body-budget (LIEUDIT_ACCOUNT_BODY_BUDGET) is from %d, the largest body, to the whole --body-budget", service.MinAccountBodyBudget>>20)
	}
	return nil
}

// validateAnswerBudgets refuses budgets of answers that are too small for the usual ones. The flags are in MiB.
func validateAnswerBudgets(c *cli.Command) error {
	const least = service.MinAccountAnswerBudget >> 20
	total, account := c.Int("answer-budget"), c.Int("account-answer-budget")
	switch {
	case account == 0 && total < 2*least:
		return terminal.NewUsageError(c, "--answer-budget (LIEUDIT_ANSWER_BUDGET) is at least %d", 2*least)
	case account != 0 && (account < least || account > total):
		return terminal.NewUsageError(c, "--account-answer-budget (LIEUDIT_ACCOUNT_ANSWER_BUDGET) is from %d to the whole --answer-budget", least)
	}
	return nil
}

// serviceConfig is the configuration that the flags describe. It lacks Router and VaultKey, because reading those may
// fail.
func (p Program) serviceConfig(c *cli.Command) service.Config {
	notifySocket, _ := p.LookupEnv("NOTIFY_SOCKET") // of systemd's protocol
	return service.Config{
		Data:                c.String("data"),
		Listen:              c.String("listen"),
		AreaListen:          c.String("area-listen"),
		OpsListen:           c.String("ops-listen"),
		PeerURL:             c.String("peer-url"),
		EventStore:          c.String("eventstore"),
		Postgres:            c.String("postgres"),
		Meilisearch:         MeilisearchURL(c, p.LookupEnv),
		AddressIndex:        strings.ToLower(c.String("address-index")),
		AcceptLostKeys:      c.Bool("accept-lost-keys"),
		AcceptLostUsage:     c.Bool("accept-lost-usage"),
		AcceptClock:         c.Bool("accept-clock"),
		Demo:                !c.Bool("no-demo"),
		PeriodGrace:         c.Duration("grace"),
		UsageShards:         c.Int("usage-shards"),
		CountToTheLetter:    c.Bool("count-to-the-letter"),
		Unthrottled:         c.Bool("no-throttle"),
		MaxConnections:      c.Int("connections"),
		BodyBudget:          int64(c.Int("body-budget")) << 20,
		AccountBodyBudget:   int64(c.Int("account-body-budget")) << 20,
		AnswerBudget:        int64(c.Int("answer-budget")) << 20,
		AccountAnswerBudget: int64(c.Int("account-answer-budget")) << 20,
		TokenPrefixes:       token.Prefixes{Secret: c.String("secret-prefix"), Publishable: c.String("publishable-prefix"), Area: c.String("area-prefix")},
		Log:                 p.newLogger(strings.ToLower(c.String("log"))),
		Out:                 p.Out,
		IsTerminal:          p.IsTerminal,
		Drain:               c.Duration("drain"),
		NotifySocket:        notifySocket,
	}
}

// logFlag selects the form of log lines. They go to standard error, so that standard output holds only results.
func (p Program) logFlag() cli.Flag {
	f := p.StringFlag("log", "text", "`FORM` of log lines on standard error: text or json")
	f.Validator = terminal.OneOf("text", "json")
	return f
}

// newLogger returns the logger of a long-running command, which writes every level from Info on.
func (p Program) newLogger(form string) *slog.Logger {
	if form == "json" {
		return slog.New(slog.NewJSONHandler(p.Err, nil))
	}
	return slog.New(slog.NewTextHandler(p.Err, nil))
}

// nodeCommand is lieudit node: a journal behind EventStoreDB's protocol, so that several instances share one log. Its
// hidden flags make the node stop answering at intervals, for chaos tests. Its variables begin with LIEUDIT_NODE, so that
// a service and a node in one environment do not read each other's.
func (p Program) nodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "node",
		Usage: "Serve a journal over EventStoreDB's protocol, for several instances of the service",
		Description: `  lieudit node --data ./lieudit-data/node
  lieudit node --data ./lieudit-data/node --listen unix:/run/lieudit.sock
  lieudit serve --eventstore 'esdb://127.0.0.1:2113?tls=false'

The protocol is spoken in the clear and without users: keep the address private.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", Value: "./lieudit-data/node", Usage: "`FOLDER` of the journal", TakesFile: true, Sources: p.EnvSource("LIEUDIT_NODE_DATA")},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:2113", Usage: "`ADDRESS`, or unix:PATH", Sources: p.EnvSource("LIEUDIT_NODE_LISTEN")},
			&cli.StringFlag{Name: "advertise", Usage: "`HOST:PORT` that clients are sent to when they ask; the address they came by when left out", Sources: p.EnvSource("LIEUDIT_NODE_ADVERTISE")},
			p.acceptClockFlag("LIEUDIT_NODE_ACCEPT_CLOCK", ""),
			p.logFlag(),
		},
		Action: p.serveJournal,
	}
}

// serveJournal serves the journal of a folder until the context ends. It owns the journal and closes it after the node has
// ended; the node closes the listener.
func (p Program) serveJournal(ctx context.Context, c *cli.Command) (err error) {
	log := p.newLogger(strings.ToLower(c.String("log")))
	if err := backup.CheckFinished(c.String("data")); err != nil {
		return err
	}
	if err := os.MkdirAll(c.String("data"), 0o700); err != nil {
		return err
	}
	wall := clock.New(clock.Options{Accept: c.Bool("accept-clock"), File: filepath.Join(c.String("data"), nodeClockFile), Log: log})
	// The journal locks its folder, so a second node on it fails here.
	j, err := journal.Open(c.String("data"), journal.Options{Clock: wall.Now, Logger: log})
	if _, isDamaged := errors.AsType[*eventstore.CorruptError](err); isDamaged {
		return fmt.Errorf("%w\nrestore a backup, or save what is whole:\n  %s", err, salvageLine("--log", c.String("data")))
	}
	if err != nil {
		return fmt.Errorf("opening the journal in %s: %w", c.String("data"), err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ln, err := node.Listen(ctx, c.String("listen"))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if err := p.PrintLine("The journal in %s is served at %s. Ctrl-C ends it.", c.String("data"), connectionString(ln.Addr())); err != nil {
		return errors.Join(err, ln.Close()) // the node has not taken the listener over yet
	}
	return node.New(j, node.Options{Advertise: c.String("advertise"), Clock: wall.Now, Logger: log}).Serve(ctx, ln)
}

// nodeClockFile is the clock's file in the folder of a node's journal.
const nodeClockFile = "clock"

// connectionString is the address of the node as its first line prints it: a value of --eventstore as it stands.
func connectionString(a net.Addr) string {
	if a.Network() == "unix" {
		path, err := filepath.Abs(a.String())
		if err != nil {
			path = a.String() // of a folder that is gone
		}
		return "esdb+unix://" + path
	}
	return fmt.Sprintf("esdb://%s?tls=false", a)
}

// Names of the vault's master keys, the present one and the one that rewrap installs. The flag --NAME-file names a file that
// holds the key; LIEUDIT_VAULT_KEY and LIEUDIT_NEW_VAULT_KEY may hold the key itself.
const (
	vaultKeyName    = "vault-key"
	newVaultKeyName = "new-vault-key"
)

// vaultKeyFlag names the file with the vault's present master key. Commands that open the vault have it.
func (p Program) vaultKeyFlag() cli.Flag {
	return p.StringFlag(vaultKeyName+"-file", "", "`FILE` with a master key for the keys of personal fields (openssl rand -base64 32); else LIEUDIT_VAULT_KEY holds it, or there is none")
}

// readMasterKey returns a master key of the vault, 32 bytes: from its file, otherwise from the environment, otherwise nil. No flag
// holds the key itself, because everybody on the machine can see the arguments of a process.
func (p Program) readMasterKey(c *cli.Command, name string) ([]byte, error) {
	text, _ := p.LookupEnv("LIEUDIT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	if file := c.String(name + "-file"); file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--%s-file: %w", name, err)
		}
		text = string(content)
	}
	return vault.ParseMasterKey(strings.TrimSpace(text))
}

// vaultCommand groups the maintenance of the vault, which keeps the keys of personal fields outside the log.
func (p Program) vaultCommand() *cli.Command {
	return terminal.NewGroup("vault", "Look after the keys of personal fields", p.vaultRewrapCommand())
}

// vaultRewrapCommand is lieudit vault rewrap: service.RewrapVault, which encrypts all data keys with another master key. It
// refuses while a service holds the data folder. On Postgres it cannot notice a running instance.
func (p Program) vaultRewrapCommand() *cli.Command {
	return &cli.Command{
		Name:  "rewrap",
		Usage: "Wrap the keys of personal fields with a new master key, while no instance runs",
		Description: `Keys that are in clear are wrapped, and those that are wrapped get another master key: all of them or none.
From then on the service starts with the new master key alone. Keys of erased accounts stay destroyed.

  openssl rand -base64 32 > new-key
  lieudit vault rewrap --new-vault-key-file new-key
  lieudit serve --vault-key-file new-key`,
		Flags: []cli.Flag{
			p.dataFlag(),
			p.StringFlag("postgres", "", "Postgres that holds the vault, as `postgres://…`; a file of the data folder when left out"),
			p.vaultKeyFlag(),
			p.StringFlag(newVaultKeyName+"-file", "", "`FILE` with the master key from now on; else LIEUDIT_NEW_VAULT_KEY holds it"),
		},
		Action: p.rewrapVault,
	}
}

// rewrapVault reads both master keys and rewraps the vault. Without a present master key the data keys are in clear; a new
// one is required, so that no vault is put in clear by mistake.
func (p Program) rewrapVault(ctx context.Context, c *cli.Command) error {
	if err := validatePostgres(c, c.String("postgres")); err != nil {
		return err
	}
	old, err := p.readMasterKey(c, vaultKeyName)
	if err != nil {
		return err
	}
	master, err := p.readMasterKey(c, newVaultKeyName)
	if err != nil {
		return err
	}
	if master == nil {
		return terminal.NewUsageError(c, "there is no new master key: name a file with --%s-file, or set LIEUDIT_NEW_VAULT_KEY", newVaultKeyName)
	}
	// Only the vault is opened: this needs its location, and the clock for the lock of the folder.
	config := service.Config{Data: c.String("data"), Postgres: c.String("postgres"), VaultKey: old, Now: time.Now}
	keys, err := service.RewrapVault(ctx, config, master)
	if err != nil {
		return err
	}
	return p.PrintLine("%d keys are wrapped with the new master key. The service starts with it alone from now on.", keys)
}

// maxShards is more streams than any log needs: with each of them a tick is shared by fewer requests.
const maxShards = 64

func checkShards(n int) error {
	if n < 1 || n > maxShards {
		return fmt.Errorf("it is not from 1 to %d", maxShards)
	}
	return nil
}
