#!/bin/sh
# A study as an array job of Slurm: each task carries out its part of the runs, in a folder of its own.
#
#   sbatch --array=0-15 examples/cluster/slurm.sh study.toml results
#   fedgenie merge results/all results/part-*        (when the tasks have ended; it names the runs that are missing)
#
# A task that reaches its time limit, is preempted or loses its node saves its runs, and goes on where it was when it is
# given again. Slurm requeues those that were preempted or lost their node; others are given again by their numbers, with
# the number of parts of the whole:
#
#   FEDGENIE_SHARDS=16 sbatch --array=3,7 examples/cluster/slurm.sh study.toml results
#SBATCH --job-name=fedgenie
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append
set -eu
scenario=$1
results=$2
# The process takes the place of the shell, so that it gets Slurm's signals.
exec fedgenie run "$scenario" --out "$results/part-$SLURM_ARRAY_TASK_ID" --shard auto --resume \
    --threads "${SLURM_CPUS_PER_TASK:-1}" --quiet
