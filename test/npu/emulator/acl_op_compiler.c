/* Stands in for libacl_op_compiler: options are taken, nothing is compiled. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int aclSetCompileopt() { return 0; }
size_t aclGetCompileoptSize() { return 64; }
int aclGetCompileopt(int option, char *value, size_t bytes) { memset(value, 0, bytes); return 0; }
int aclopSetCompileFlag() { return 0; }
int aclGenGraphAndDumpForOp() { return 500000; }
int aclrtGetSysParamOpt(int option, int64_t *value) { *value = 0; return 0; }
int aclrtSetSysParamOpt() { return 0; }
int aclrtCtxGetSysParamOpt(int option, int64_t *value) { *value = 0; return 0; }
int aclrtCtxSetSysParamOpt() { return 0; }
