package train

import (
	"onlinerna/train/config"
	"onlinerna/train/hook"
	"onlinerna/train/option"
)

// What a run is given; see package config.
type (
	Config    = config.Config
	RNAConfig = config.RNA
	Schedule  = config.Schedule

	ScheduleKind  = config.ScheduleKind
	RNAMode       = config.Mode
	RNAStatistics = config.Statistics
	RNAMomentum   = config.Momentum
	RNAResidual   = config.Residual

	Hyperparameter = config.Hyperparameter
)

// AutoOut as Config.Out stands for runs/<time>-<model>.
const AutoOut = config.AutoOut

// What Config.BestBy takes.
const (
	ByError = config.ByError
	ByLoss  = config.ByLoss
)

// The kinds of schedule.
const (
	Linear   = config.Linear
	Constant = config.Constant
	Step     = config.Step
	Multi    = config.Multi
	Cosine   = config.Cosine
	Hold     = config.Hold
	Poly     = config.Poly
	OneCycle = config.OneCycle
)

// Schedules lists the kinds of schedule.
var Schedules = config.Schedules

// Optimizers are the names that Config.Optimizer takes.
func Optimizers() []string { return config.Optimizers() }

// Hyperparameters lists those of all optimisers but the weight decay, which each takes.
func Hyperparameters() []Hyperparameter { return config.Hyperparameters() }

// Recipe finds a recipe by its name.
func Recipe(name string) (*config.Recipe, error) { return config.FindRecipe(name) }

// RecipeNames lists the names of the recipes.
func RecipeNames() []string { return config.RecipeNames() }

// RateDefaults and DecayDefaults list the optimisers whose rate and weight decay do not go by the data, as "adamw: 0.001".
func RateDefaults() string { return config.RateDefaults() }

// DecayDefaults is described with RateDefaults.
func DecayDefaults() string { return config.DecayDefaults() }

// The ways to use RNA.
const (
	Off     = config.Off
	Offline = config.Offline
	Online  = config.Online
)

// The ways to give BatchNorm statistics to combined weights.
const (
	Reestimate = config.Reestimate
	Combine    = config.Combine
)

// How often a schedule changes the rate.
const (
	ByEpoch = config.ByEpoch
	ByStep  = config.ByStep
)

// What happens to the optimiser's momentum when an extrapolated point replaces the iterate.
const (
	Keep  = config.Keep
	Reset = config.Reset
)

// Where residuals come from.
const (
	Weights   = config.Weights
	Gradients = config.Gradients
)

// AutoBatch as Config.Batch stands for the largest batch that fits.
const AutoBatch = config.AutoBatch

// Options lists all options of a Config.
func Options() option.Table[Config] { return config.Options() }

// ReadOptions reads the options that a user wrote into a file, JSON or YAML.
func ReadOptions(path string) ([]option.Setting, error) { return config.ReadFile(path) }

// Hooks and what they are called with; see package hook.
type (
	Hook        = hook.Hook
	StepHook    = hook.StepHook
	AsyncHook   = hook.AsyncHook
	QueuedHook  = hook.QueuedHook
	EpochHook   = hook.EpochHook
	SavingHook  = hook.SavingHook
	ShardedHook = hook.ShardedHook
	OpeningHook = hook.OpeningHook
	HoldingHook = hook.HoldingHook
	ClosingHook = hook.ClosingHook
	Holdings    = hook.Holdings
	Spacer      = hook.Spacer
	State       = hook.State
)

// The lines of metrics.jsonl and their parts.
type (
	StepRecord      = hook.StepRecord
	EpochRecord     = hook.EpochRecord
	RNARecord       = hook.RNARecord
	CandidateRecord = hook.CandidateRecord
	ScoreRecord     = hook.ScoreRecord
	BestRecord      = hook.BestRecord
	AverageRecord   = hook.AverageRecord
	Seconds         = hook.Seconds
)
