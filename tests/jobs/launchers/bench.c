/* A stand-in for nccl-tests' all_gather_perf, and for hccl_test's all_gather_test where that is its
 * name: a real MPI program that prints their tables. It gathers over MPI, so that what it measures
 * crossed the network between the hosts it ran on. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long bytes(const char *text) {
  char unit = text[strlen(text) - 1];
  long number = atol(text);
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : unit == 'G' ? number << 30 : number;
}

/* nccl-tests 2.13 and hccl_test: what stands above the rows. */
static void nccl_head(long first, long last, int ranks, char names[][64]) {
  printf("# nThread 1 nGpus 1 minBytes %ld maxBytes %ld step: 2(factor) warmup iters: 1 iters: 5 "
         "agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n", first, last);
  for (int at = 0; at < ranks; at++)
    printf("#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:01:00.0] Stand-in\n", at, 1000 + at,
           names[at], 0);
  printf("#\n#%60s  out-of-place%23sin-place          \n", "", "");
  printf("#%11s%14s%10s%8s%8s     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n",
         "size", "count", "type", "redop", "root");
  printf("#%11s%14s%26s     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n", "(B)",
         "(elements)", "");
}

static void hccl_head(long first, long last) {
  printf("the minbytes is %ld, maxbytes is %ld, iters is 5, warmup_iters is 1\n", first, last);
  printf("%-15s | %-12s | %-18s | %s\n", "data_size(Bytes):", "aveg_time(us):",
         "alg_bandwidth(GB/s):", "check_result:");
}

int main(int argc, char **argv) {
  long first = 1 << 20, last = 1 << 20;
  int rank, ranks;
  char name[64] = {0}, names[64][64];
  for (int at = 1; at + 1 < argc; at++) {
    if (!strcmp(argv[at], "-b")) first = bytes(argv[at + 1]);
    if (!strcmp(argv[at], "-e")) last = bytes(argv[at + 1]);
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gethostname(name, sizeof name - 1);
  MPI_Gather(name, 64, MPI_CHAR, names, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (getenv("BENCH_HANGS")) sleep(600);
  int hccl = strstr(argv[0], "_test") != NULL;
  if (rank == 0 && hccl) hccl_head(first, last);
  if (rank == 0 && !hccl) nccl_head(first, last, ranks, names);
  double sum = 0;
  int cells = 0;
  for (long size = first; size <= last; size *= 2) {
    long piece = size / ranks / 16 * 16;
    char *mine = malloc(piece), *all = malloc(piece * ranks);
    memset(mine, 'a' + rank, piece);
    double halves[2];
    long wrong = 0;
    for (int half = 0; half < 2; half++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double start = MPI_Wtime();
      for (int turn = 0; turn < 5; turn++)
        MPI_Allgather(mine, piece, MPI_CHAR, all, piece, MPI_CHAR, MPI_COMM_WORLD);
      halves[half] = (MPI_Wtime() - start) / 5 * 1e6;
      for (int from = 0; from < ranks; from++) wrong += all[from * piece] != 'a' + from;
    }
    if (rank == 0 && hccl)
      printf("%-17ld | %-14.2f | %-20.5f | %s\n", piece * ranks, halves[0],
             piece * ranks / halves[0] / 1e3, wrong ? "failed" : "success");
    if (rank == 0 && !hccl) {
      printf("%12ld  %12ld  %8s  %6s  %6d", piece * ranks, piece / 4, "float", "none", -1);
      for (int half = 0; half < 2; half++) {
        double algbw = piece * ranks / halves[half] / 1e3;
        double busbw = algbw * (ranks - 1) / ranks;
        char time[16];
        snprintf(time, sizeof time, halves[half] < 99.995 ? "%7.2f" : halves[half] < 9999.95 ? "%7.1f" : "%7.0f", halves[half]);
        printf("  %7s  %6.2f  %6.2f  %5ld", time, algbw, busbw, wrong);
        sum += busbw;
        cells++;
      }
      printf("\n");
    }
    free(mine);
    free(all);
  }
  if (rank == 0 && !hccl)
    printf("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g \n#\n\n", sum / cells);
  MPI_Finalize();
  return 0;
}
