package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/vault"
)

// Flags that name the file of a master key. A variable may hold the key itself: LIEUDIT_VAULT_KEY, LIEUDIT_NEW_VAULT_KEY.
const (
	vaultKeyName    = "vault-key"
	newVaultKeyName = "new-vault-key"
)

func (p Program) vaultKeyFlag() cli.Flag {
	return p.StringFlag(vaultKeyName+"-file", "", "`FILE` with a master key for the keys of personal fields (openssl rand -base64 32); else LIEUDIT_VAULT_KEY holds it, or there is none")
}

// readMasterKey is a master key of the vault: from its file, from the environment, or nil. It is never an argument: those
// can be seen by everybody on the machine.
func (p Program) readMasterKey(c *cli.Command, name string) ([]byte, error) {
	text, _ := p.LookupEnv("LIEUDIT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	if file := c.String(name + "-file"); file != "" {
		kept, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--%s-file: %w", name, err)
		}
		text = string(kept)
	}
	return vault.ParseMasterKey(strings.TrimSpace(text))
}

func (p Program) vaultCommand() *cli.Command {
	return terminal.NewGroup("vault", "Look after the keys of personal fields", p.vaultRewrapCommand())
}

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
	config := service.Config{Data: c.String("data"), Postgres: c.String("postgres"), VaultKey: old, Now: time.Now}
	keys, err := service.RewrapVault(ctx, config, master)
	if err != nil {
		return err
	}
	return p.PrintLine("%d keys are wrapped with the new master key. The service starts with it alone from now on.", keys)
}
